"""Lists of words that attacks leave alone."""

from __future__ import annotations

# The list that the TextFooler authors published with their code.
_TEXTFOOLER = """
    a about above across after afterwards again against ain all almost alone along already also although
    am among amongst an and another any anyhow anyone anything anyway anywhere are aren aren't around as
    at back been before beforehand behind being below beside besides between beyond both but by can cannot
    could couldn couldn't d didn didn't doesn doesn't don don't down due during either else elsewhere
    empty enough even ever everyone everything everywhere except first for former formerly from hadn
    hadn't hasn hasn't haven haven't he hence her here hereafter hereby herein hereupon hers herself him
    himself his how however hundred i if in indeed into is isn isn't it it's its itself just latter
    latterly least ll may me meanwhile mightn mightn't mine more moreover most mostly must mustn mustn't
    my myself namely needn needn't neither never nevertheless next no nobody none noone nor not nothing
    now nowhere o of off on once one only onto or other others otherwise our ours ourselves out over per
    please s same shan shan't she she's should've shouldn shouldn't somehow something sometime somewhere
    such t than that that'll the their theirs them themselves then thence there thereafter thereby
    therefore therein thereupon these they this those through throughout thru thus to too toward towards
    under unless until up upon used ve was wasn wasn't we were weren weren't what whatever when whence
    whenever where whereafter whereas whereby wherein whereupon wherever whether which while whither who
    whoever whole whom whose why with within without won won't would wouldn wouldn't y yet you you'd
    you'll you're you've your yours yourself yourselves
"""

# The English list of the NLTK data.
_ENGLISH = """
    a about above after again against ain all am an and any are aren aren't as at be because been before
    being below between both but by can couldn couldn't d did didn didn't do does doesn doesn't doing don
    don't down during each few for from further had hadn hadn't has hasn hasn't have haven haven't having
    he her here hers herself him himself his how i if in into is isn isn't it it's its itself just ll m ma
    me mightn mightn't more most mustn mustn't my myself needn needn't no nor not now o of off on once
    only or other our ours ourselves out over own re s same shan shan't she she's should should've shouldn
    shouldn't so some such t than that that'll the their theirs them themselves then there these they this
    those through to too under until up ve very was wasn wasn't we were weren weren't what when where
    which while who whom why will with won won't wouldn wouldn't y you you'd you'll you're you've your
    yours yourself yourselves
"""

STOPWORDS: dict[str, frozenset[str]] = {
    "textfooler": frozenset(_TEXTFOOLER.split()),
    "english": frozenset(_ENGLISH.split()),
    "none": frozenset(),
}
