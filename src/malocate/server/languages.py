"""The answer page's own words in the languages that it knows; the question's are the design's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Phrases:
    """All that the answer page says by itself, in one language."""

    name: str
    row: str
    column: str
    title: str
    skip_link: str
    here: str
    sign_out: str
    language: str
    answered: str
    same: str
    late: str
    extra: str
    skipped: str
    gone: str
    refused: str
    changed: str
    again_title: str
    again: str
    over: str
    over_more: str
    waiting: str
    waiting_more: str
    paused: str
    paused_more: str
    look_again: str
    given: str
    leave: str
    your_answer: str
    span: str
    a_number: str
    send: str
    skip: str
    refuse: str
    why: str
    refuse_now: str
    last: str
    undo: str
    offline: str
    failed: str
    no_number: str
    outside: str
    contradicts: str
    unknown: str
    away: str
    signed_out: str
    who_title: str
    who: str
    who_more: str
    begin: str

    def note(self, word: str) -> str:
        """Give what is said after an answer; nothing for a word that is not ours."""
        word = "answered" if word == "reversed" else word
        known = ("answered", "same", "late", "extra", "skipped", "gone", "refused", "changed")
        return str(getattr(self, word)) if word in known else ""


ENGLISH = Phrases(
    name="English",
    row="row {place}",
    column="column {place}",
    title="Question",
    skip_link="Skip to the content",
    here="Where you are",
    sign_out="Sign out",
    language="Language",
    answered="Thank you, your answer is recorded.",
    same="That answer had been recorded already; it counts once.",
    late="Thank you, your answer is recorded. It came late, and counts all the same.",
    extra="Somebody else had answered this in the meantime; your answer is kept beside it.",
    skipped="Skipped; somebody else may be asked this.",
    gone="That question is no longer out; here is another.",
    refused="Noted: this question will not be asked again.",
    changed="Your last answer is changed; the change is in the log.",
    again_title="Asked again on purpose.",
    again=(
        "You may have seen this question before. Answer as you feel now: how much two answers "
        "differ shows how exact answers are."
    ),
    over="Thank you, that was all.",
    over_more="The survey has ended; there is nothing more to answer.",
    waiting="No question just now",
    waiting_more="The next questions are being prepared. This page looks again by itself.",
    paused="The survey is paused",
    paused_more="Questions come again when it goes on. This page looks again by itself.",
    look_again="Look again",
    given="You answered {value}. Choose another answer; both are kept in the log.",
    leave="Leave it as it is",
    your_answer="Your answer",
    span="from {low} to {high}",
    a_number="a number",
    send="Send",
    skip="Skip for now",
    refuse="I will not answer this",
    why="Why (you may leave it empty)",
    refuse_now="Refuse this question",
    last="Last: {row}, {column}: {value}.",
    undo="Undo",
    offline="No connection. Your answer is kept on this device, and sent as soon as there is one.",
    failed="That did not work.",
    no_number="The answer must be a number.",
    outside="Answers go from {low} to {high}; give another.",
    contradicts="This question has been answered otherwise; the first answer stands.",
    unknown="That question is not there any more; look for another.",
    away="Answers cannot be taken just now; try again in a moment.",
    signed_out="Your answer is kept on this device; sign in, and open this page again.",
    who_title="Who answers?",
    who="A name for you or this tablet",
    who_more=(
        "Questions are lent to this name; whoever comes back with it goes on where they stopped."
    ),
    begin="Begin",
)

GERMAN = Phrases(
    name="Deutsch",
    row="Zeile {place}",
    column="Spalte {place}",
    title="Frage",
    skip_link="Zum Inhalt springen",
    here="Wo Sie sind",
    sign_out="Abmelden",
    language="Sprache",
    answered="Danke, Ihre Antwort ist gespeichert.",
    same="Diese Antwort war schon gespeichert; sie zählt einmal.",
    late="Danke, Ihre Antwort ist gespeichert. Sie kam spät und zählt trotzdem.",
    extra="Inzwischen hat jemand anders geantwortet; Ihre Antwort wird daneben aufbewahrt.",
    skipped="Übersprungen; vielleicht wird jemand anders danach gefragt.",
    gone="Diese Frage ist nicht mehr offen; hier ist eine andere.",
    refused="Notiert: Diese Frage wird nicht noch einmal gestellt.",
    changed="Ihre letzte Antwort ist geändert; die Änderung steht im Protokoll.",
    again_title="Absichtlich noch einmal gefragt.",
    again=(
        "Vielleicht kennen Sie diese Frage schon. Antworten Sie, wie Sie jetzt empfinden: Wie weit "
        "zwei Antworten auseinanderliegen, zeigt, wie genau Antworten sind."
    ),
    over="Danke, das war alles.",
    over_more="Die Umfrage ist beendet; es gibt nichts mehr zu beantworten.",
    waiting="Gerade keine Frage",
    waiting_more="Die nächsten Fragen werden vorbereitet. Diese Seite sieht selbst wieder nach.",
    paused="Die Umfrage macht Pause",
    paused_more="Es geht später weiter. Diese Seite sieht selbst wieder nach.",
    look_again="Noch einmal nachsehen",
    given="Sie haben {value} geantwortet. Wählen Sie neu; beides bleibt im Protokoll.",
    leave="So lassen",
    your_answer="Ihre Antwort",
    span="von {low} bis {high}",
    a_number="eine Zahl",
    send="Senden",
    skip="Jetzt überspringen",
    refuse="Das möchte ich nicht beantworten",
    why="Warum (darf leer bleiben)",
    refuse_now="Antwort verweigern",
    last="Zuletzt: {row}, {column}: {value}.",
    undo="Rückgängig",
    offline=(
        "Keine Verbindung. Ihre Antwort bleibt auf diesem Gerät und wird gesendet, sobald es geht."
    ),
    failed="Das hat nicht geklappt.",
    no_number="Die Antwort muss eine Zahl sein.",
    outside="Antworten gehen von {low} bis {high}; geben Sie eine andere.",
    contradicts="Diese Frage ist schon anders beantwortet; die erste Antwort bleibt.",
    unknown="Diese Frage gibt es nicht mehr; sehen Sie nach einer anderen.",
    away="Antworten können gerade nicht angenommen werden; versuchen Sie es gleich noch einmal.",
    signed_out=(
        "Ihre Antwort bleibt auf diesem Gerät; melden Sie sich an und öffnen Sie die Seite wieder."
    ),
    who_title="Wer antwortet?",
    who="Ein Name für Sie oder dieses Tablet",
    who_more="Fragen gehen an diesen Namen; wer mit ihm wiederkommt, macht weiter.",
    begin="Beginnen",
)

FRENCH = Phrases(
    name="Français",
    row="ligne {place}",
    column="colonne {place}",
    title="Question",
    skip_link="Aller au contenu",
    here="Vous êtes ici",
    sign_out="Se déconnecter",
    language="Langue",
    answered="Merci, votre réponse est enregistrée.",
    same="Cette réponse était déjà enregistrée ; elle compte une fois.",
    late="Merci, votre réponse est enregistrée. Elle est arrivée tard et compte quand même.",
    extra="Quelqu'un a répondu entre-temps ; votre réponse est gardée à côté.",
    skipped="Question passée ; elle sera peut-être posée à quelqu'un d'autre.",
    gone="Cette question n'est plus ouverte ; en voici une autre.",
    refused="C'est noté : cette question ne sera plus posée.",
    changed="Votre dernière réponse est modifiée ; le journal garde la modification.",
    again_title="Posée de nouveau exprès.",
    again=(
        "Vous avez peut-être déjà vu cette question. Répondez selon ce que vous pensez maintenant "
        ": l'écart entre deux réponses montre leur précision."
    ),
    over="Merci, c'est terminé.",
    over_more="L'enquête est finie ; il n'y a plus rien à répondre.",
    waiting="Pas de question pour le moment",
    waiting_more="Les prochaines questions se préparent. Cette page vérifie d'elle-même.",
    paused="L'enquête est en pause",
    paused_more="Elle reprendra plus tard. Cette page vérifie d'elle-même.",
    look_again="Vérifier",
    given="Vous avez répondu {value}. Choisissez une autre réponse ; le journal garde les deux.",
    leave="Ne rien changer",
    your_answer="Votre réponse",
    span="de {low} à {high}",
    a_number="un nombre",
    send="Envoyer",
    skip="Passer pour l'instant",
    refuse="Je ne veux pas répondre",
    why="Pourquoi (facultatif)",
    refuse_now="Refuser cette question",
    last="Dernière : {row}, {column} : {value}.",
    undo="Annuler",
    offline="Pas de connexion. Votre réponse est gardée sur cet appareil et sera envoyée ensuite.",
    failed="Cela n'a pas marché.",
    no_number="La réponse doit être un nombre.",
    outside="Les réponses vont de {low} à {high} ; donnez-en une autre.",
    contradicts="Cette question a déjà une autre réponse ; la première reste.",
    unknown="Cette question n'existe plus ; cherchez-en une autre.",
    away="Les réponses ne passent pas pour le moment ; réessayez dans un instant.",
    signed_out=(
        "Votre réponse est gardée sur cet appareil ; connectez-vous et rouvrez cette page."
    ),
    who_title="Qui répond ?",
    who="Un nom pour vous ou cette tablette",
    who_more="Les questions vont à ce nom ; qui revient avec lui reprend où il s'est arrêté.",
    begin="Commencer",
)

SPANISH = Phrases(
    name="Español",
    row="fila {place}",
    column="columna {place}",
    title="Pregunta",
    skip_link="Ir al contenido",
    here="Dónde está",
    sign_out="Salir",
    language="Idioma",
    answered="Gracias, su respuesta está guardada.",
    same="Esa respuesta ya estaba guardada; cuenta una vez.",
    late="Gracias, su respuesta está guardada. Llegó tarde y cuenta igual.",
    extra="Otra persona respondió mientras tanto; su respuesta se guarda aparte.",
    skipped="Pregunta saltada; quizá se le haga a otra persona.",
    gone="Esa pregunta ya no está abierta; aquí hay otra.",
    refused="Anotado: esta pregunta no se volverá a hacer.",
    changed="Su última respuesta ha cambiado; el registro guarda el cambio.",
    again_title="Se pregunta otra vez a propósito.",
    again=(
        "Quizá ya haya visto esta pregunta. Responda según lo que piensa ahora: la diferencia "
        "entre dos respuestas muestra su exactitud."
    ),
    over="Gracias, eso es todo.",
    over_more="La encuesta ha terminado; no queda nada por responder.",
    waiting="No hay preguntas por ahora",
    waiting_more="Se preparan las siguientes preguntas. Esta página vuelve a mirar sola.",
    paused="La encuesta está en pausa",
    paused_more="Seguirá más tarde. Esta página vuelve a mirar sola.",
    look_again="Volver a mirar",
    given="Usted respondió {value}. Elija otra respuesta; el registro guarda ambas.",
    leave="Dejarla como está",
    your_answer="Su respuesta",
    span="de {low} a {high}",
    a_number="un número",
    send="Enviar",
    skip="Saltar por ahora",
    refuse="No quiero responder",
    why="Por qué (puede dejarlo vacío)",
    refuse_now="Rechazar esta pregunta",
    last="Última: {row}, {column}: {value}.",
    undo="Deshacer",
    offline="Sin conexión. Su respuesta se guarda en este dispositivo y se enviará en cuanto haya.",
    failed="Eso no ha funcionado.",
    no_number="La respuesta debe ser un número.",
    outside="Las respuestas van de {low} a {high}; dé otra.",
    contradicts="Esta pregunta ya tiene otra respuesta; queda la primera.",
    unknown="Esa pregunta ya no está; busque otra.",
    away="Ahora no se pueden recibir respuestas; inténtelo en un momento.",
    signed_out="Su respuesta se guarda en este dispositivo; entre y abra la página otra vez.",
    who_title="¿Quién responde?",
    who="Un nombre para usted o esta tableta",
    who_more="Las preguntas van a este nombre; quien vuelve con él sigue donde lo dejó.",
    begin="Empezar",
)

KNOWN: Mapping[str, Phrases] = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}


def phrases_of(language: str) -> Phrases:
    """Give the page's words in a language, or in English where it does not know them.

    >>> phrases_of("fr-CA").send, phrases_of("nl").send
    ('Envoyer', 'Send')
    """
    return KNOWN.get(language, KNOWN.get(language.partition("-")[0], ENGLISH))


def name_of(language: str) -> str:
    """Give what a language is called by who speaks it; its tag where we do not know it.

    >>> name_of("de-CH"), name_of("nl")
    ('Deutsch', 'nl')
    """
    known = KNOWN.get(language, KNOWN.get(language.partition("-")[0]))
    return language if known is None else known.name


def chosen(languages: Sequence[str], wanted: str, accepted: str) -> str:
    """Give the language to use: the wanted one, else what a browser accepts first, else ours.

    >>> chosen(["en", "fr"], "", "de-CH, fr-CH;q=0.9, en;q=0.8")
    'fr'
    >>> chosen(["en", "fr"], "de", "")
    'en'
    """
    for each in (wanted, *_accepted(accepted)):
        for language in languages:
            if each.lower() in (language.lower(), language.partition("-")[0].lower()):
                return language
        short = each.partition("-")[0].lower()
        near = [language for language in languages if language.partition("-")[0] == short]
        if short and near:
            return near[0]
    return languages[0]


def _accepted(header: str) -> list[str]:
    """Read the header Accept-Language, the dearest first; what is odd in it counts for nothing."""
    found = []
    for part in header[:500].split(","):
        tag, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.partition("=")[2]) if rest else 1.0
        except ValueError:
            weight = 0.0
        if tag and weight > 0:
            found.append((weight, tag.strip()))
    return [tag for _, tag in sorted(found, key=lambda each: -each[0])]
