"""Words that most sentences let stand for each other.

Lexicons know too little of how a word is used: to WordNet "image" is a synonym of "picture", and "yet" is
none of "but". These groups were written by hand, with reviews in mind, and a few dropped after reading what
they do to sentences: words of one group say the same with the same attitude, strong or mild. A group is no
promise that a sentence keeps its idiom ("nothing but" is not "nothing yet"): what a search takes from here,
it shows to a language model.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import permutations

from unfooled.language.inflection import inflect, lemmas, part_of
from unfooled.language.spellings import other_spellings
from unfooled.resources.inflections import InflectionTable

_ADJECTIVES = """
great superb terrific fantastic marvelous wonderful excellent splendid / bad poor lousy / terrible awful
dreadful horrible atrocious appalling abysmal / boring dull tedious tiresome dreary / funny amusing humorous
comical / hilarious uproarious sidesplitting / beautiful gorgeous lovely stunning / clever witty ingenious /
smart intelligent bright / stupid dumb idiotic moronic foolish / silly goofy daft / interesting intriguing
fascinating absorbing / engrossing gripping riveting compelling enthralling absorbing / engaging appealing
winning / charming delightful enchanting / entertaining enjoyable amusing diverting / moving touching
poignant affecting / powerful potent forceful strong / weak feeble flimsy / thin slight flimsy / predictable
foreseeable / formulaic conventional unoriginal / hackneyed trite stale banal clichéd / bland insipid vapid
/ pretentious pompous self-important / pointless meaningless senseless / mediocre middling so-so / strange
odd weird peculiar bizarre / new fresh novel / big large / huge enormous gigantic immense / small tiny /
entire whole / real genuine authentic true / fake phony bogus / difficult hard tough / easy simple /
important significant / crucial vital essential / different distinct / similar comparable / main chief
principal primary / recent latest / modern contemporary / sweet endearing / warm tender / gentle mild /
honest sincere candid / brutal savage vicious / fast quick rapid / slow sluggish plodding / long lengthy /
short brief / lush sumptuous opulent / vivid vibrant / bleak grim somber dismal / dark gloomy / original
inventive innovative imaginative / creative inventive imaginative / impressive striking remarkable /
outstanding exceptional extraordinary remarkable / solid sound / serious earnest / uneven inconsistent
patchy / messy sloppy / loud noisy / crude vulgar coarse crass / raunchy bawdy / ridiculous absurd
preposterous ludicrous / annoying irritating grating aggravating / disappointing underwhelming unsatisfying
/ lifeless inert listless / hollow empty vacuous / shallow superficial / worthwhile rewarding / worthy
deserving / subtle understated / complex complicated intricate / famous celebrated renowned / perfect
flawless impeccable / ideal perfect / sharp keen incisive / wry droll / amazing astonishing astounding
incredible / scary frightening / terrifying chilling petrifying / creepy eerie spooky / sexy seductive
alluring / tragic heartbreaking heartrending / happy glad / cheerful merry jolly / worthless useless /
flawed imperfect / thoughtful reflective contemplative / insightful perceptive astute discerning / quiet
calm / plain straightforward / elegant graceful / stylish chic / energetic lively spirited vigorous / bold
daring audacious / brave courageous fearless / tense suspenseful nerve-racking / incoherent disjointed
muddled / confusing baffling bewildering puzzling / relentless unrelenting incessant / sufficient adequate /
pleasant agreeable / nice pleasant / sad sorrowful / depressing dispiriting disheartening / gloomy glum /
lazy indolent / obvious evident apparent / clear plain / certain sure / complete total utter / sheer utter /
pure sheer / usual customary / normal ordinary / common ordinary / rare uncommon / strong robust sturdy /
wild untamed / crazy insane mad / angry furious irate / ambitious aspiring / convincing persuasive /
believable credible plausible / implausible unbelievable far-fetched / unnecessary needless / inevitable
unavoidable / endless interminable / constant continual / frequent repeated / sudden abrupt / entrancing
mesmerizing spellbinding hypnotic / refreshing invigorating / uplifting inspiring heartening / heartwarming
heartening / sentimental mawkish maudlin / syrupy sappy mushy / manipulative calculating / awkward clumsy
ungainly / inept incompetent / skillful adept expert / masterful masterly / accomplished skilled / talented
gifted / young youthful / elderly aged / wealthy rich affluent / wise sage / gross disgusting revolting
repulsive / nasty unpleasant / unpleasant disagreeable / ugly unsightly / violent bloody / exciting
thrilling exhilarating / thrilling electrifying / dazzling brilliant / brilliant superb dazzling / memorable
unforgettable / forgettable unmemorable / satisfying gratifying fulfilling / unique singular / special
exceptional / odd curious / eccentric quirky offbeat / playful frisky / naive unsophisticated /
sophisticated refined / heavy weighty / light airy / faithful loyal / harsh severe / cruel heartless /
provocative challenging / timely opportune / timeless ageless / universal general / private personal /
intimate close / magical enchanting / mysterious enigmatic / obscure unclear / vague hazy indistinct /
humble modest / minor slight / major important / fundamental basic / various diverse / sundry various /
overlong protracted / juvenile childish immature / adolescent juvenile teenage / immense vast / amateurish
unprofessional / workmanlike competent / capable competent able / dreamy dreamlike / poetic lyrical /
bittersweet poignant / frustrating exasperating maddening / exhausting tiring wearying / fun entertaining
enjoyable / comic comedic / cinematic filmic / decent respectable / acceptable passable / ordinary
unremarkable / offensive insulting / cheesy corny / corny hokey / sleazy seedy / slick polished / glossy
slick / tired weary / contrived artificial / forced strained / unconvincing implausible / unlikely
improbable / likely probable / afraid scared fearful / aware conscious / lonely solitary / ancient old /
dated outdated / traditional conventional / typical characteristic / average ordinary / deep profound /
broad wide / central main / key crucial / necessary essential / useful helpful / harmful damaging /
dangerous hazardous perilous / safe secure / moral ethical / historical historic / mental psychological /
physical bodily / erotic sensual / attractive appealing / handsome good-looking / cute adorable /
melodramatic histrionic / overblown inflated / excessive extreme / intense fierce / passionate ardent
fervent / captivating enthralling enchanting mesmerizing / wrenching harrowing / disturbing unsettling
troubling / shocking startling / surprising unexpected startling / unimaginative uninspired / derivative
unoriginal imitative / mindless brainless / leaden ponderous / jumbled muddled / aimless directionless /
well-made well-crafted / well-intentioned well-meaning / laid-back relaxed / first-rate excellent top-notch
/ second-rate inferior / unusual uncommon / joyous joyful / loving affectionate / hopeful optimistic /
hopeless desperate / fitting appropriate apt / proper appropriate / correct right / wrong incorrect /
glorious magnificent splendid / magnificent splendid superb / breathtaking awe-inspiring / spectacular
dazzling / ravishing gorgeous / delicious delectable / tasty flavorful / painful agonizing / sharp-witted
quick-witted / breezy lighthearted / ironic sardonic / satirical satiric / comforting consoling / repetitive
repetitious / redundant superfluous / unremarkable undistinguished / unfocused scattered / unsubtle
heavy-handed / noteworthy notable / notable remarkable / promising encouraging
"""

_NOUNS = """
film movie picture / story tale narrative / plot storyline / actor performer / script screenplay / director
filmmaker / scene sequence / viewer spectator / moviegoer filmgoer / filmmaking moviemaking / kid child
youngster / guy fellow / woman lady / folk people / effort attempt / mess shambles / fun enjoyment / laugh
chuckle / idea notion concept / charm appeal allure / subject topic / emotion feeling sentiment / moment
instant / result outcome / way manner / kind sort type / problem trouble difficulty / journey trip voyage /
tone mood / pace tempo / ending conclusion / finale conclusion / beginning start outset / dialogue dialog /
material stuff / cliche platitude / energy vigor vitality / power force strength / talent gift / skill
ability / imagination creativity inventiveness / portrait depiction portrayal / fan admirer devotee / junk
trash rubbish garbage / gem jewel treasure / delight joy pleasure / triumph victory success / failure flop /
disappointment letdown / boredom tedium ennui / excitement thrill / tension suspense / fear dread / terror
horror / anger rage fury / sadness sorrow / grief sorrow / happiness joy / courage bravery / wit cleverness
/ intelligence intellect / stupidity idiocy / nonsense drivel / violence brutality / chance opportunity /
flaw fault defect / mistake error / goal aim / purpose aim / reason cause / answer reply / job task /
quality attribute / mystery enigma / puzzle riddle / struggle battle / fight battle / war conflict / friend
pal / buddy pal / enemy foe / killer murderer / wealth abundance / lack absence / amount quantity / majority
bulk / rest remainder / pair couple / group bunch / crowd throng / series string / mixture mix blend /
combination blend / look glance / perspective viewpoint standpoint / view opinion / attitude outlook / style
manner / manner fashion / spirit soul / essence core / center middle / depth profundity / truth reality /
honesty sincerity / sincerity earnestness / elegance grace / beauty loveliness / tale yarn / adventure
escapade / romance love / passion ardor / enthusiasm zeal / zest gusto / affection fondness / tenderness
gentleness / compassion sympathy / innocence naivety / childhood youth / teen teenager adolescent / comedian
comic / setting locale / location place / evening night / tripe drivel / cast ensemble / masterpiece
masterwork / sequel follow-up / flick film movie / writer author / role part / hero protagonist / joke gag /
lesson moral / message moral / flaw shortcoming weakness / surprise shock / hint trace / touch hint / song
tune melody / desire longing / fantasy dream / pain agony / face visage / book novel / critic reviewer /
review critique / study analysis / glimpse peek / chase pursuit / award prize / money cash / company firm /
cop policeman / doctor physician / lawyer attorney / teacher instructor / student pupil / dad father / mom
mother / baby infant / boy lad / country nation / sea ocean / entertainment amusement / conversation
dialogue / exploration examination / observation remark / insight perception / examination study /
collection assortment / hodgepodge jumble / craftsmanship workmanship / artistry craftsmanship / spectacle
sight / companion partner / relationship bond / fate destiny / courage nerve / bravery valor / honor
integrity / melancholy sadness / loneliness solitude / laughter mirth / amusement mirth / vision outlook /
aspect facet / element component / detail particular / theme motif / formula recipe / sentimentality
mawkishness / predictability triteness / absurdity ridiculousness
"""

_VERBS = """
begin start / seem appear / show reveal / reveal disclose / display exhibit / give provide offer / deliver
provide / try attempt / strive endeavor / want wish / need require / use employ / help aid assist / maintain
keep / watch view / enjoy relish savor / love adore / hate despise loathe detest / think believe / remain
stay / portray depict / create craft fashion / explore examine / examine inspect / investigate probe /
understand grasp comprehend / remember recall recollect / happen occur / tell recount relate / entertain
amuse / endure suffer / suggest imply / prove demonstrate / end finish conclude / laugh chuckle / captivate
enchant enthrall / engage involve / combine blend mix / merge fuse / avoid evade sidestep / succeed prevail
/ function operate / allow permit / annoy irritate / bother disturb / surprise astonish amaze / please
delight gratify / shine sparkle / sparkle glitter / perform play / build construct / demand require /
deserve merit / evoke conjure / inspire motivate / fascinate intrigue / mesmerize hypnotize / bore weary /
wander stray / ramble meander / struggle battle / rely depend / resemble mirror / reflect mirror /
illustrate demonstrate / convey communicate / express convey / describe depict / explain clarify / reject
spurn / embrace welcome / accept embrace / increase grow / decrease diminish / diminish lessen / destroy
ruin / spoil ruin / wreck ruin / shock startle stun / frighten scare / confuse bewilder baffle / purchase
buy / discover uncover / find discover / observe notice / notice spot / stare gaze / shout yell / talk speak
/ discuss debate / choose select pick / decide resolve / plan intend / hope wish / try endeavor / attempt
endeavor / obtain acquire / acquire gain / gather collect / assemble gather / fill pack / infuse imbue /
permeate pervade / transform convert / alter change modify / vary differ / continue proceed / persist
persevere / stop cease halt / quit leave / depart leave / arrive come / vanish disappear / emerge appear /
perish die / survive outlast / crave desire / yearn long / cherish treasure / admire respect / praise
applaud / mock ridicule deride / insult offend / abuse mistreat / deceive trick fool / pretend feign /
exaggerate overstate / emphasize stress / stress underline / grab seize / snatch grab / toss throw / hurl
fling / plunge dive / leap jump / falter waver / collapse crumble / soar fly / linger stay / feel seem / see
watch / see view / know realize / live dwell reside / bring deliver / lead guide / rise climb / break
shatter / miss overlook / offer present / choose opt / fascinate captivate / charm delight / engross absorb
/ satisfy please / disappoint dismay / waste squander / fit suit / appeal attract / laugh giggle / cry weep
/ weep sob / smile grin / wonder ponder / consider contemplate / ponder contemplate / imagine envision /
expect anticipate / anticipate await / tackle address / handle treat / focus concentrate / unfold develop /
evolve develop / sustain maintain / preserve retain / possess own / contain include / include comprise /
produce create / generate create / achieve accomplish attain / win gain / render make / force compel / push
press / draw attract / steal pilfer / cut slice / fix repair / mend repair / connect link / join unite /
separate divide / compare liken / recommend suggest / urge encourage / guarantee ensure / hurt harm / wound
injure / heal cure / excel shine
"""

_ADVERBS = """
perhaps maybe possibly / almost nearly practically virtually / very extremely / really truly genuinely /
often frequently / sometimes occasionally / always invariably / usually typically generally normally /
simply merely / entirely completely totally wholly utterly fully thoroughly / especially particularly
notably / somewhat slightly / rather fairly quite / quickly rapidly swiftly / suddenly abruptly / certainly
surely definitely undoubtedly / undeniably unquestionably indisputably / apparently seemingly evidently /
obviously clearly plainly / finally eventually / ultimately finally / mostly mainly largely / primarily
chiefly principally mainly / too overly excessively / immensely enormously tremendously hugely / greatly
immensely vastly / deeply profoundly / remarkably strikingly extraordinarily / surprisingly unexpectedly /
beautifully gorgeously exquisitely / wonderfully marvelously superbly brilliantly / perfectly flawlessly /
cleverly ingeniously smartly / badly poorly terribly / horribly terribly dreadfully awfully / painfully
agonizingly / slowly gradually / easily effortlessly readily / constantly continually perpetually /
repeatedly continually / initially originally / currently presently / recently lately / previously formerly
/ immediately instantly / exactly precisely / roughly approximately / hence therefore thus consequently /
however nevertheless nonetheless / still nonetheless / besides moreover furthermore / also likewise / anyway
anyhow / oddly strangely weirdly curiously / sadly regrettably unfortunately / fortunately luckily
thankfully / honestly frankly sincerely / seriously gravely / gently softly tenderly / quietly silently /
loudly noisily / briefly shortly / again anew / together jointly / solely only exclusively / only merely /
just simply merely / endlessly interminably / relentlessly unrelentingly / unintentionally inadvertently
unwittingly / deliberately intentionally purposely / literally actually / actually really / basically
essentially fundamentally / skillfully deftly adroitly expertly / subtly delicately / vividly graphically /
brutally savagely / hilariously uproariously / amusingly humorously / charmingly delightfully / engagingly
appealingly / convincingly persuasively / predictably foreseeably / intermittently sporadically / pretty
fairly quite / well nicely / highly extremely / exceptionally extraordinarily unusually / consistently
constantly / steadily continuously / increasingly progressively / decidedly distinctly definitely /
distinctly clearly / mildly slightly / moderately reasonably / reasonably fairly / sufficiently adequately /
supposedly allegedly / inevitably unavoidably / occasionally intermittently / elegantly gracefully /
earnestly sincerely / passionately ardently fervently / intelligently smartly / thoughtfully reflectively /
richly lavishly / stylishly elegantly / smoothly effortlessly / awkwardly clumsily / absurdly ridiculously
ludicrously preposterously / wildly crazily / strangely peculiarly / utterly absolutely / amazingly
astonishingly incredibly / incredibly unbelievably / annoyingly irritatingly
"""

_OTHERS = """
but yet / though although / because since / until till / despite notwithstanding / beneath underneath /
about concerning regarding / within inside / anyone anybody / everyone everybody / someone somebody /
whether if / whenever when / via through
"""

# The second word can stand for the first, not always the other way.
_ONE_WAY = """
that which / who that
"""

_GROUPS = {"adj": _ADJECTIVES, "noun": _NOUNS, "verb": _VERBS, "adv": _ADVERBS, "": _OTHERS}


def interchangeable(word: str, tag: str, table: InflectionTable) -> tuple[str, ...]:
    """Other spellings, and words of the word's groups in the form of the tag; in small letters."""
    word = word.lower()
    found = [*other_spellings(word)]
    if word != "that" or tag == "WDT":  # "that film" and "proof that" are not "which"
        found += _partners("").get(word, ())
    if part := part_of(tag):
        for lemma in lemmas(word, tag, table):
            found += [inflect(partner, tag, table) for partner in _partners(part).get(lemma, ())]
    return tuple(dict.fromkeys(form for form in found if form and form != word))


@lru_cache(maxsize=len(_GROUPS))
def _partners(part: str) -> Mapping[str, tuple[str, ...]]:
    """What may stand for each word that is listed as this part of speech."""
    found: dict[str, tuple[str, ...]] = {}
    pairs = [pair for group in _groups(_GROUPS[part]) for pair in permutations(group, 2)]
    if not part:
        pairs += [(first, second) for first, second in _groups(_ONE_WAY)]
    for word, other in pairs:
        found[word] = tuple(dict.fromkeys((*found.get(word, ()), other)))
    return found


def _groups(listed: str) -> list[list[str]]:
    return [group.split() for group in listed.split("/")]
