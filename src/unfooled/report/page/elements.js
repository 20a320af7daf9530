"use strict";
// What comes from a text is set as text, never as markup.
const add = (parent, tag, text, kind) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  parent.append(element);
  return element;
};
