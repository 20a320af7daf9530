"""Texts that break programs: too short, too long, in every script, full of what is no letter or not seen."""

from __future__ import annotations

from unfooled.core.result import Example
from unfooled.stopwords import STOPWORDS

Fields = tuple[tuple[str, str], ...]

_ZALGO = "".join(
    letter + "".join(chr(0x300 + (7 * i + j) % 112) for j in range(60)) for i, letter in enumerate("film")
)
_TAGGED = "great" + "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all") + chr(0xE007F) + " film"

TEXTS: dict[str, str] = {
    "empty": "",
    "one blank": " ",
    "blanks only": " \t \u2003\u3000 ",
    "line ends only": "\n\r\n\r\u2028\u2029\x85",
    "one letter": "a",
    "one digit": "7",
    "one sign": "!",
    "one emoji": "😀",
    "100,000 letters": "a" * 100_000,
    "5,000 words of a letter": " ".join("abcdefghij"[i % 10] for i in range(5000)),
    "5,001 words": " ".join(["good"] * 5001),
    "a word 3,000 times": "great " * 3000,
    "punctuation": "?!... --- ;;; ,,, () [] {} «» “” ‘’ – — …",
    "emoji": "😀😃😄 🎬🍿 👎👎👎",
    "emoji families": "the 👨‍👩‍👧‍👦 film 🧑🏽‍🚀 was 🏳️‍🌈 good",
    "flags": "🇩🇪🇫🇷 a great 🏴󠁧󠁢󠁳󠁣󠁴󠁿 film 🇺",
    "keycaps and skin": "1️⃣ 2️⃣ great 👍🏿 film",
    "zero-width": "gr\u200beat\u200c f\u200dilm\ufeff was\u2060 good",
    "bidi controls": "a \u202egreat\u202c film \u2067and\u2069 \u200fnot\u200e bad",
    "tag characters": _TAGGED,
    "a tower of marks": _ZALGO,
    "marks without a letter": "\u0301\u0302 \u0303 good \u0304film",
    "a lone surrogate": "a great \ud800 film",
    "a word with a surrogate": "a gr\udfffeat film was good",
    "surrogates only": "\udc00\ud800",
    "NUL": "a great\x00 film\x00was good",
    "control characters": "a \x01great\x02 \x07film\x08 \x1b was \x7f good \x9f",
    "noncharacters": "a great\uffff film \ufdd0 was \U0010ffff good",
    "private use": "a \ue000 great \U000f0000 film",
    "Hebrew": "הסרט היה טוב מאוד והעלילה לא רעה",
    "Arabic": "كان الفيلم جيدًا جدًا والقصة ليست سيئة",
    "Chinese": "这部电影非常好，情节也不错。",
    "Japanese": "この映画はとても良かった。ストーリーも悪くない！",
    "Korean, decomposed": "이 영화는 정말 좋았다",
    "Thai": "หนังเรื่องนี้ดีมากและเนื้อเรื่องไม่เลว",
    "Devanagari": "यह फ़िल्म बहुत अच्छी थी और कहानी बुरी नहीं है",
    "Tamil and Myanmar": "படம் மிகவும் நன்றாக இருந்தது ဇာတ်ကားကောင်းတယ်",
    "mixed scripts": "a gоod fіlm, très bon, очень хорошо, 很好, ดี",
    "beyond the first plane": "𝔞 𝓰𝓻𝓮𝓪𝓽 𝕗𝕚𝕝𝕞 𐍈𐌰 𒀀𒁀",
    "URLs": "see http://x.test/a?b=c&d=%20#e and www.a-b.test:80/~f for a great film",
    "addresses": "mail <first.last+tag@sub.x.test>, @user #tag RT @x: great film",
    "markup": "<script>alert('great')</script><img src=x onerror=alert(1)> film &amp; &#0; </textarea>",
    "SQL": "'; DROP TABLE results; -- great film \" OR 1=1",
    "Markdown": "# great\n| a | film |\n|---|---|\n**good** `code` [x](javascript:y) ~~bad~~",
    "terminal escapes": "a \x1b[31mgreat\x1b[0m film \x1b]0;title\x07 \x1b[2J was good",
    "LaTeX": r"\textbf{great} film $x^2_{i}$ \\ \input{/etc/passwd} %",
    "code": "if (film == 'good') { return !bad; } // ok\n\tfor i in range(10): pass",
    "JSON": '{"film": ["great", null, 1e309], "a": {"b": "\\ud83d"}}',
    "CSV": '=HYPERLINK("x"),"great ""film""",+1,-1,@a\r\n"',
    "BERT's own signs": "[CLS] the [MASK] film [SEP] was [UNK] good [PAD] ##ly",
    "RoBERTa's own signs": "<s> great <mask> film </s> <unk> <pad> Ġgood ▁bad",
    "others' own signs": "<SPLIT> <|endoftext|> <extra_id_0> [INST] film [/INST] <<SYS>> great",
    "format strings": "a {0} great {film!r} %s %(x)d %n film ${HOME} $(id) `id` {{7*7}}",
    "long numbers": "9" * 5000 + " great " + "0." + "1" * 400 + " 1e999999 -0 film 0x" + "f" * 99,
    "other digits": "great film ٣ ४ ５ ² ½ Ⅷ ①",
    "letters that grow": "ßtraße İstanbul ŉ ǰ ΐ ﬁlm ﬀ ẞ GROSS ı K Å",
    "ligatures and width": "ﬁlm was ｇｏｏｄ ａｎｄ ﬂat Ǆ Ŀ",
    "soft hyphens": "a gre\u00adat fi\u00adlm was go\u00adod",
    "line ends": "a great\nfilm\r\nwas\rgood\x0band\x0cfun\x85not\u2028bad",
    "blanks that do not break": "a\u00a0great\u202ffilm\u2007was\u3000good\u1680plot",
    "words of the table": "good great film movie story cast bad dull fun",
    "stop words": " ".join(sorted(STOPWORDS["textfooler"])[:60]),
    "names": "Anna Berlin Müller O'Neil-Smith IBM McDonald Jean-Luc d'Arc NASA",
    "apostrophes": "don't won’t 'tis rock'n'roll it''s '' ' o' f*ck a@b _x_ x_y --a-- good",
    "casings": "GREAT gREAT Great iPHONE mIXeD A I film FILM",
    "a pyramid of words": " ".join("good"[: 1 + i % 4] * (1 + i // 4) for i in range(60)),
    "plain": "the film was very good and the plot is not bad",
}  # fmt: skip

PAIRS: dict[str, Fields] = {
    "a pair": (("premise", "the film was good"), ("hypothesis", "the movie was not bad")),
    "a pair, first empty": (("premise", ""), ("hypothesis", "the film was very good and fun")),
    "a pair, second empty": (("premise", "the film was very good"), ("hypothesis", "")),
    "a pair, both empty": (("premise", ""), ("hypothesis", "")),
    "a pair, both the same": (("premise", "a great film"), ("hypothesis", "a great film")),
    "a pair of signs": (("premise", "[SEP]"), ("hypothesis", "film [SEP] good \x00 bad")),
    "a pair, first very long": (("premise", "film " * 3000), ("hypothesis", "a great film")),
    "a pair with a surrogate": (("premise", "\ud800"), ("hypothesis", "a great film")),
}


def contents(*, pairs: bool = True) -> dict[str, Fields]:
    return {name: (("text", text),) for name, text in TEXTS.items()} | (PAIRS if pairs else {})


def example(key: int, content: Fields, label: int) -> Example:
    return Example(key, content, label, content[-1][0])
