"""The rules of the house that no type checker knows: who imports whom, who writes what, who reads roles, clocks and the environment.

Read with `ast` alone. Each rule is also tried on a small piece of wrong code, so that one that finds nothing any more is noticed.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from django.db.migrations.loader import MigrationLoader

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("config", "approvals", "runs", "artifacts", "access")  # an app imports only apps to its right
FOR_ALL = "config.clock"
# what a user's own code may import
FOR_USERS = {"runs.errors", "runs.engine.models", "runs.engine.outcomes", "runs.engine.retry", "runs.engine.tools", "runs.engine.workflow"}
FOR_USERS |= {"runs.engine.orders"}

WRITES = {"create", "bulk_create", "get_or_create", "update_or_create", "update", "bulk_update", "delete", "save", "_raw_delete"}
WRITES |= {f"a{verb}" for verb in WRITES}
# whose rows one file alone writes, and by what names a query reaches them
WRITERS = {
    "runs/log.py": {"Run", "Event", "events"},
    "approvals/decisions.py": {"Decision", "decisions"},
    "access/roles.py": {"RoleVersion", "RoleChange"},
    "access/teams.py": {"Team", "TeamMember", "TeamChange", "in_teams"},
    "access/second_admin.py": {"AskedChange"},
    "access/audit.py": {"AuditEntry"},
    "access/sealing.py": {"AuditSeal", "Sealer"},
    "access/refusals.py": {"RefusalTally"},
    "access/break_glass.py": {"BreakGlass"},
    "access/keys.py": {"AgentKey", "ProvisionerKey"},
    "runs/signals.py": {"Signal", "signals"},
    "runs/glances.py": {"Glance", "glances"},
    "approvals/groups.py": {"ReviewerGroup", "GroupMember", "GroupVersion"},
    "approvals/policy.py": {"Policy", "PolicySet", "policies"},
    "runs/engine/journal.py": {"JournalEntry", "journal"},
    "runs/steps.py": {"AgentStep", "agent_steps"},
    "runs/webhooks.py": {"ReceivedWebhook", "WebhookSource", "WebhookWait", "webhooks", "webhook_waits"},
    "runs/webhook_places.py": {"WebhookPlace", "kept_places"},
    "artifacts/vault.py": {"Payload"},
    "artifacts/keys.py": {"WorkspaceKey"},
    "artifacts/uploading.py": {"Upload"},
    "artifacts/reveal.py": {"Reveal", "reveals"},
}
# who else makes a row, for the writer to save; a redaction's Policy and a message that was uploaded are other things
MAKERS = {"runs/starting.py": {"Run"}, "artifacts/redaction.py": {"Policy"}, "approvals/simulating.py": {"Run"}}  # the last never saves it
MAKERS |= {"runs/uploads.py": {"Upload"}}
# who saves one thing that it has in its hand: file → names of variables
SAVERS = {
    "access/models.py": {"user"},
    "artifacts/boxed.py": {"drawn"},  # a picture
    "approvals/decisions.py": {"decision"},
    "artifacts/storing.py": {"storage"},  # files
    "artifacts/uploading.py": {"made"},
    "approvals/gate.py": {"action"},
    "approvals/grants.py": {"grant"},
    "approvals/groups.py": {"now"},
    "approvals/policy.py": {"made"},
    "runs/engine/journal.py": {"entry"},
    "runs/log.py": {"run"},
    "runs/signals.py": {"signal"},
    "runs/steps.py": {"row"},
}
RAW_SQL = {"access/append_only.py", "artifacts/traces.py", "config/apps.py", "config/health.py", "runs/statements.py"}
ONE_READS = {"runs.statements": "runs/log.py"}  # module → the only file that imports it
CLOCKS = {"config/clock.py", "examples/support_triage/desk/store.py"}  # the desk is the outside world; the demo moves its clock as well
READS_ENVIRONMENT = {"config/env.py", "config/clock.py", "examples/support_triage/tools.py"}
READS_ENVIRONMENT |= {
    "examples/support_triage/desk/store.py",
    "examples/back_office/tools.py",
    "examples/back_office/store.py",
    "examples/outside_loop/loop.py",
}
# these pass the whole environment on to a child process, or say which settings are meant
HANDS_ON_ENVIRONMENT = {"manage.py", "config/asgi.py", "config/beat.py", "config/celery.py", "config/supervisor.py"}
# mark_safe on what was escaped piece by piece, or on a template's own output
MARKS_SAFE = {
    "access/templatetags/handrail.py",
    "approvals/presenting.py",
    "approvals/templatetags/approving.py",
    "artifacts/templatetags/renditions.py",
    "runs/presenting.py",
    "runs/templatetags/story.py",
}
# HTML that is no page of ours: a framed message has the one sheet that its policy names, and what is sent by mail has its styles with it
FRAMED = {"artifacts/preview.py", "examples/support_triage/letters.py"}
VIEWS = re.compile(r"[/_](views|api|consumers|pages|sockets)\.py$")
# how one row is taken out of all there are
FETCHES = {verb for each in ("get", "first", "last", "earliest", "latest", "in_bulk") for verb in (each, f"a{each}")}
# what a view takes out of all there are without `access`: what belongs to what it has found, who asks, and whom a verb then judges
FOUND = {
    "approvals/api.py": {"Grant"},
    "approvals/notifications/pages.py": {"User", "Webhook"},
    "runs/api.py": {"User"},
    "runs/recovery_views.py": {"User"},
    "runs/start_views.py": {"User"},
    "runs/uploads_api.py": {"Artifact"},
    "access/key_api.py": {"User", "ProvisionerKey"},
    "access/key_views.py": {"User"},
    "access/people_views.py": {"User"},
}
CAPABILITIES_READERS = {"access/rules.py"}
FUNCTION_MAX, FILE_MAX = 60, 450  # lines
LONGER = {  # file → lines at most, and why it is one file
    "runs/vocabulary.py": (560, "one class a type: the closed list of events"),
}


def code() -> list[Path]:
    """Every Python file of the product, migrations apart."""
    rooms = [path for room in (*ROOMS, "examples") for path in sorted((ROOT / room).rglob("*.py"))]
    return [ROOT / "manage.py", *(path for path in rooms if "migrations" not in path.parts)]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


Found = list[str]
Rule = Callable[[str, ast.AST], Found]


def breaches(rule: Rule) -> Found:
    """What in the product's code breaks a rule, as file:line: what."""
    return [breach for path in code() for breach in breaches_of(rule, name(path), path.read_text("utf-8"))]


def breaches_of(rule: Rule, file: str, text: str) -> Found:
    return [f"{file}:{getattr(node, 'lineno', 0)}: {found}" for node in nodes(text) for found in rule(file, node)]


@lru_cache(maxsize=1000)
def nodes(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text)))


def chain(node: ast.AST) -> list[str]:
    """The names along `a.b.c(…).d`, outermost last: what a call is made on, through the calls and subscripts between."""
    match node:
        case ast.Name(id=word):
            return [word]
        case ast.Attribute(value=value, attr=attr):
            return [*chain(value), attr]
        case ast.Call(func=of) | ast.Subscript(value=of) | ast.Await(value=of):
            return chain(of)
    return []


# who imports whom ------------------------------------------------------------------------------------------------------------------


def imports(file: str, node: ast.AST) -> Found:
    room = file.split("/")[0]
    found = [f"{room} imports {module}" for module in imported(file, node) if not may_import(room, module)]
    return found + [f"{module} is {ONE_READS[module]}'s own" for module in imported(file, node) if ONE_READS.get(module, file) != file]


def imported(file: str, node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, level=0, names=names) if module:
            # `from config import clock` means config.clock
            yield from (f"{module}.{alias.name}" if is_package(module) else module for alias in names)
        case ast.ImportFrom(level=level, module=module, names=names) if level:
            base = file.removesuffix(".py").split("/")[:-level]
            yield from (".".join([*base, module or alias.name]) for alias in names)
        case ast.Call(func=called, args=[ast.Constant(value=str(module)), *_]) if chain(called)[-1:] in (["import_module"], ["get_model"]):
            yield module


def is_package(module: str) -> bool:
    return (ROOT / module.replace(".", "/")).is_dir()


def may_import(room: str, module: str) -> bool:
    target = module.split(".")[0]
    if target == "tests":
        return False
    if target == room or target not in (*ROOMS, "examples"):
        return True
    if room == "examples":
        return module in FOR_USERS or any(module.startswith(f"{known}.") for known in FOR_USERS)
    if module == FOR_ALL:
        return True
    return room in ROOMS and target in ROOMS and ROOMS.index(target) > ROOMS.index(room) or room == "manage.py"


def test_an_app_imports_only_apps_to_its_right_and_examples_only_what_users_may():
    assert breaches(imports) == []


def test_a_template_takes_in_only_templates_and_tags_of_apps_to_its_right():
    tags = {path.stem: path.relative_to(ROOT).parts[0] for room in ROOMS for path in (ROOT / room).rglob("templatetags/*.py")}
    wrong = []
    for path in sorted((ROOT / "templates").rglob("*.html")):
        room = path.relative_to(ROOT / "templates").parts[0]
        if room not in ROOMS:
            continue
        text = path.read_text("utf-8")
        taken = [place.split("/")[0] for place in re.findall(r"""{%\s*(?:include|extends)\s+["']([^"']+)""", text) if "/" in place]
        taken += [tags[word] for words in re.findall(r"{%\s*load\s+([^%]+?)\s*%}", text) for word in words.split() if word in tags]
        wrong += [f"{name(path)} takes in {other}" for other in taken if ROOMS.index(other) < ROOMS.index(room)]
    assert wrong == []


# who writes what -------------------------------------------------------------------------------------------------------------------


def writes(file: str, node: ast.AST) -> Found:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in WRITES:
        return []
    on = set(chain(node.func.value))
    return [f"{writer} alone writes {', '.join(on & theirs)}" for writer, theirs in WRITERS.items() if writer != file and on & theirs]


def makes(file: str, node: ast.AST) -> Found:
    """A row is made where it is written."""
    match node:
        case ast.Call(func=ast.Name(id=model) | ast.Attribute(value=ast.Name(id="models"), attr=model)):
            owners = [writer for writer, theirs in WRITERS.items() if model in theirs]
            return [f"{owners[0]} alone makes {model}"] if owners and file not in owners and model not in MAKERS.get(file, ()) else []
    return []


def saves(file: str, node: ast.AST) -> Found:
    """`thing.save()` and `thing.delete()` don't say what thing is: so each place is named."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="save" | "asave" | "delete" | "adelete" as verb)):
            on = chain(value)
            query = set(on) & {"objects", "_default_manager", "filter", "exclude", "all"}
            known = len(on) == 1 and on[0] in SAVERS.get(file, set())
            outside = file.startswith("examples/support_triage/desk/")
            return [] if query or known or outside else [f"{'.'.join(on)}.{verb}()"]
    return []


def raw_sql(file: str, node: ast.AST) -> Found:
    if file in RAW_SQL or file.startswith("examples/support_triage/desk/"):
        return []
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="cursor" | "raw" | "extra" | "executemany" as verb)) if (
            verb != "cursor" or chain(value)[-1:] in (["connection"], ["connections"])
        ):
            return [f"{verb}(): SQL of its own"]
        case ast.Name(id="RawSQL") | ast.alias(name="RawSQL"):
            return ["RawSQL"]
    return []


def views_write(file: str, node: ast.AST) -> Found:
    """Views call one verb of the domain; they never write rows themselves."""
    if not VIEWS.search(file) or file.startswith("examples/"):
        return []
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=verb)) if verb in WRITES and {"objects", "save"} & {*chain(value), verb}:
            return [f"{'.'.join(chain(value))}.{verb}()"]
    return []


def test_each_kind_of_row_that_counts_has_one_writer():
    assert breaches(writes) == []
    assert breaches(makes) == []


def test_who_saves_an_object_is_known():
    assert breaches(saves) == []


def test_views_write_nothing_themselves():
    assert breaches(views_write) == []


def test_sql_is_written_by_hand_where_it_must_be():
    assert breaches(raw_sql) == []


# who reads what ---------------------------------------------------------------------------------------------------------------------


def reads_roles(file: str, node: ast.AST) -> Found:
    if file in CAPABILITIES_READERS:
        return []
    match node:
        case ast.Attribute(attr="capabilities", ctx=ast.Load()):
            return ["reads .capabilities"]
        case ast.Constant(value=str(text)) if re.search(r"(^|__)capabilities(__|$)", text) and "__" in text:
            return [f"queries {text}"]
        case ast.keyword(arg=str(arg)) if re.search(r"__capabilities(__|$)|^capabilities__", arg):
            return [f"queries {arg}"]
    return []


def fetches(file: str, node: ast.AST) -> Found:
    """Views find only what the actor may reach."""
    match node:
        case ast.Name(id="get_object_or_404" | "get_list_or_404" as word) | ast.alias(name="get_object_or_404" | "get_list_or_404" as word):
            return [word]
        case ast.Call(func=ast.Attribute(value=value, attr=verb)) if VIEWS.search(file) and verb in FETCHES:
            return [f"{'.'.join(chain(value))}.{verb}()"] if _of_all(value) and not FOUND.get(file, set()) & set(chain(value)) else []
        case ast.Call(func=ast.Name(id="only"), args=[value]) if VIEWS.search(file):
            return [f"only({'.'.join(chain(value))})"] if _of_all(value) and not FOUND.get(file, set()) & set(chain(value)) else []
        case ast.Subscript(value=value, slice=ast.Constant() | ast.UnaryOp()) if VIEWS.search(file):
            return [f"{'.'.join(chain(value))}[…]"] if _of_all(value) and not FOUND.get(file, set()) & set(chain(value)) else []
    return []


def _of_all(value: ast.AST) -> bool:
    return bool({"objects", "_default_manager"} & set(chain(value)))


def clocks(file: str, node: ast.AST) -> Found:
    if file in CLOCKS:
        return []
    match node:
        case ast.Attribute(attr="now" | "utcnow" | "today" | "localtime" | "localdate" as word) if chain(node)[-2:-1] in (
            ["datetime"],
            ["date"],
            ["timezone"],
        ):
            return [f"{'.'.join(chain(node))}: ask config.clock"]
        case ast.Attribute(attr="time" | "time_ns" | "gmtime" as word) if chain(node)[:-1] == ["time"]:
            return [f"time.{word}: ask config.clock, or time.monotonic() for a duration"]
        case ast.ImportFrom(module="time", names=names) if {a.name for a in names} & {"time", "time_ns"}:
            return ["from time import time"]
        case ast.ImportFrom(module="django.utils.timezone", names=names) if {a.name for a in names} & {"now", "localtime", "localdate"}:
            return ["from django.utils.timezone import now"]
        case ast.ImportFrom(module=str(module), names=names) if module.startswith("django.db") and "Now" in {a.name for a in names}:
            return ["Now: the database's clock"]
    return []


def environment(file: str, node: ast.AST) -> Found:
    if file in READS_ENVIRONMENT | HANDS_ON_ENVIRONMENT:
        return []
    match node:
        case ast.Attribute(attr="environ" | "getenv" | "environb" as word) if chain(node)[0] == "os":
            return [f"os.{word}: config/env.py reads the environment"]
        case ast.ImportFrom(module="os", names=names) if {a.name for a in names} & {"environ", "getenv"}:
            return ["from os import environ"]
    return []


def hands_on(file: str, node: ast.AST) -> Found:
    """Files that may hand the environment on read nothing from it."""
    if file not in HANDS_ON_ENVIRONMENT:
        return []
    match node:
        case ast.Subscript(value=ast.Attribute(attr="environ"), ctx=ast.Load()):
            return ["os.environ[…]"]
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get" | "pop" as word)):
            return [f"os.environ.{word}()"]
        case ast.Attribute(attr="getenv"):
            return ["os.getenv()"]
    return []


def test_roles_are_read_by_the_rules_alone():
    assert breaches(reads_roles) == []


def test_views_find_only_what_the_actor_may_reach():
    assert breaches(fetches) == []


def test_there_is_one_clock():
    assert breaches(clocks) == []


def test_the_environment_is_read_by_the_settings_alone():
    assert breaches(environment) == []
    assert breaches(hands_on) == []


def half_a_trouble(file: str, node: ast.AST) -> Found:
    """With one of the two kinds alone a connection that broke off passes for something else."""
    kinds = {"DatabaseError", "InterfaceError", "OperationalError"}
    match node:
        case ast.ImportFrom(module=str(module), names=names) if module.startswith("django.db") and file != "access/errors.py":
            return [f"{each.name}: access.errors has DatabaseTrouble and AWAY" for each in names if each.name in kinds]
    return []


def test_a_database_that_breaks_off_is_its_trouble_as_what_it_says_is():
    assert breaches(half_a_trouble) == []


def requests_in_a_transaction(_: str, node: ast.AST) -> Found:
    match node:
        case ast.Assign(targets=[ast.Name(id="ATOMIC_REQUESTS")], value=ast.Constant(value=False)):
            return []
        case ast.Constant(value="ATOMIC_REQUESTS") | ast.keyword(arg="ATOMIC_REQUESTS"):
            return ["ATOMIC_REQUESTS"]
    return []


def test_no_request_is_one_transaction(settings):
    assert breaches(requests_in_a_transaction) == []
    assert [alias for alias, database in settings.DATABASES.items() if database.get("ATOMIC_REQUESTS")] == []


# what pages are made of -------------------------------------------------------------------------------------------------------------

INLINE = {
    "a style attribute": r"""\sstyle\s*=\s*["'{]""",
    "an inline handler": r"""\son[a-z]+\s*=\s*["'{]""",
    "an htmx handler": r"\bhx-on\b|\bdata-hx-on\b",
    "htmx that evaluates": r"""\bhx-(?:vals|headers)\s*=\s*["']\s*(?:js|javascript):""",
    "an inline script": r"<script(?![^>]*\ssrc=)",
    "an inline style": r"<style\b",
    "a script as an address": r"javascript:",
}
UNESCAPED = r"\|\s*safe(?:seq)?\b|{%\s*autoescape\s+off|{%\s*debug\b"
COMMENTS = re.compile(r"{#.*?#}|{%\s*comment\b.*?{%\s*endcomment\s*%}|<!--.*?-->", re.S)


def templates() -> list[Path]:
    return sorted(path for top in ("templates", "examples") for path in (ROOT / top).rglob("*.html"))


def inline_in(text: str) -> Found:
    shown = COMMENTS.sub("", text)
    return [what for what, pattern in INLINE.items() if re.search(pattern, shown, re.I)]


def test_templates_hold_no_inline_script_style_or_handler():
    assert [f"{name(path)}: {what}" for path in templates() for what in inline_in(path.read_text("utf-8"))] == []


def test_templates_escape_everything():
    assert [name(path) for path in templates() if re.search(UNESCAPED, COMMENTS.sub("", path.read_text("utf-8")))] == []


def words_decided_by(text: str) -> Found:
    """Words of the page by which a template decides: Python gives it a kind or a flag, and words may be put otherwise."""
    conditions = re.findall(r"{%\s*(?:if|elif)\s(.*?)%}", COMMENTS.sub("", text))
    return [word for each in conditions for word in re.findall(r"""(?:[=!]=|\bin)\s*["']([A-Z][^"']*)["']""", each)]


def test_templates_decide_by_kinds_and_not_by_words():
    assert [f"{name(path)}: {word}" for path in templates() for word in words_decided_by(path.read_text("utf-8"))] == []
    assert words_decided_by('{% if name == "Decide" %}{% elif value != "Nobody" and kind == "own" %}{% endif %}') == ["Decide", "Nobody"]


def html_in_code(file: str, node: ast.AST) -> Found:
    found = inline_in(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) and "<" in node.value else []
    return [each for each in found if not (file in FRAMED and each in ("an inline style", "a style attribute"))]


def marks_safe(file: str, node: ast.AST) -> Found:
    match node:
        case ast.Name(id="mark_safe" | "SafeString" | "SafeText" as word, ctx=ast.Load()) if file not in MARKS_SAFE:
            return [word]
        case ast.Call(func=ast.Name(id="format_html" | "format_html_join" as word), args=args):
            at = 1 if word == "format_html_join" else 0
            plain = len(args) > at and isinstance(args[at], ast.Constant)
            return [] if plain else [f"{word} with a pattern that is not a plain text"]
        case ast.Attribute(attr="__html__"):
            return ["__html__"]
    return []


def test_html_made_in_code_is_escaped_and_has_nothing_inline():
    assert breaches(marks_safe) == []
    assert breaches(html_in_code) == []


# sizes and migrations ---------------------------------------------------------------------------------------------------------------


def too_long(_: str, node: ast.AST) -> Found:
    match node:
        case ast.FunctionDef(name=called) | ast.AsyncFunctionDef(name=called):
            lines = (node.end_lineno or 0) - node.lineno + 1
            return [f"{called} has {lines} lines"] if lines > FUNCTION_MAX else []
    return []


def test_functions_and_files_are_short():
    assert breaches(too_long) == []
    lines = {name(path): len(path.read_text("utf-8").splitlines()) for path in code()}
    assert {file: n for file, n in lines.items() if n > LONGER.get(file, (FILE_MAX,))[0]} == {}
    assert [file for file in LONGER if lines[file] <= FILE_MAX] == [], "short by now"


def test_every_migration_can_be_taken_back():
    """Read from the files, without a database."""
    ours = {key: migration for key, migration in MigrationLoader(None).disk_migrations.items() if key[0] in ROOMS}
    assert {room for room, _ in ours} == {"access", "artifacts", "runs", "approvals"}
    assert [
        f"{app}.{which}: {operation}" for (app, which), m in ours.items() for operation in m.operations if not operation.reversible
    ] == []


# the rules themselves ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "file", "text"),
    [
        (imports, "access/x.py", "from runs.models import Run"),
        (imports, "access/x.py", "def f():\n    from config import settings"),
        (imports, "runs/x.py", "import approvals.gate"),
        (imports, "runs/x.py", "from ..approvals import gate"),
        (imports, "runs/x.py", "from importlib import import_module\nimport_module('approvals.gate')"),
        (imports, "config/x.py", "from tests.cast import cast"),
        (imports, "config/x.py", "from examples.support_triage import workflow"),
        (imports, "examples/x.py", "from runs.log import holding"),
        (imports, "examples/x.py", "from config import clock"),
        (imports, "examples/x.py", "from runs.engine import executor"),
        (imports, "runs/api.py", "from runs import statements"),
        (writes, "runs/api.py", "Event.objects.filter(run=1).update(type='x')"),
        (writes, "runs/api.py", "models.Run.objects.all().delete()"),
        (writes, "runs/api.py", "run.events.create(seq=1)"),
        (writes, "approvals/api.py", "Decision.objects.create(x=1)"),
        (writes, "runs/starting.py", "AuditEntry.objects.bulk_create([])"),
        (writes, "runs/engine/effects.py", "JournalEntry.objects.filter(run=1).update(state='done')"),
        (writes, "runs/starting.py", "models.Payload.objects.bulk_create([])"),
        (makes, "runs/intake.py", "Event.objects.bulk_create(Event(seq=n) for n in range(3))"),
        (makes, "approvals/gate.py", "models.Decision(verdict='approved').save()"),
        (makes, "runs/engine/channel.py", "entry = JournalEntry()"),
        (saves, "runs/api.py", "run.save()"),
        (saves, "runs/log.py", "self.row.save()"),
        (too_long, "runs/x.py", "def f():\n" + "    x = 1\n" * 60),
        (raw_sql, "runs/api.py", "with connection.cursor() as c: pass"),
        (raw_sql, "runs/api.py", "Run.objects.raw('x')"),
        (views_write, "runs/views.py", "Signal.objects.create(kind='x')"),
        (views_write, "runs/start_views.py", "signal.save()"),
        (reads_roles, "runs/x.py", "if 'x' in role.capabilities: pass"),
        (reads_roles, "runs/x.py", "Membership.objects.values_list('role__capabilities')"),
        (reads_roles, "runs/x.py", "Membership.objects.filter(role__capabilities__contains='x')"),
        (fetches, "runs/views.py", "Run.objects.get(pk=1)"),
        (fetches, "runs/views.py", "Run.objects.select_related('x').get(pk=1)"),
        (fetches, "runs/views.py", "Run.objects.filter(pk=1).first()"),
        (fetches, "runs/views.py", "Run.objects.order_by('x').values_list('pk').alast()"),
        (fetches, "runs/views.py", "Run.objects.filter(pk=1)[0]"),
        (fetches, "runs/views.py", "only(Run.objects.select_related('x').filter(pk=1))"),
        (fetches, "runs/api.py", "Run.objects.filter(pk=1).latest()"),
        (fetches, "runs/other.py", "from django.shortcuts import get_object_or_404"),
        (clocks, "runs/x.py", "datetime.now(UTC)"),
        (clocks, "runs/x.py", "datetime.datetime.utcnow()"),
        (clocks, "runs/x.py", "field = DateTimeField(default=timezone.now)"),
        (clocks, "runs/x.py", "time.time()"),
        (clocks, "runs/x.py", "from django.db.models.functions import Now"),
        (environment, "runs/x.py", "os.environ['X']"),
        (environment, "runs/x.py", "os.getenv('X')"),
        (hands_on, "config/celery.py", "os.environ.get('X')"),
        (half_a_trouble, "runs/x.py", "from django.db import DatabaseError, transaction"),
        (half_a_trouble, "runs/x.py", "from django.db.utils import OperationalError"),
        (requests_in_a_transaction, "config/settings.py", "DATABASES = {'default': {'ATOMIC_REQUESTS': True}}"),
        (marks_safe, "runs/x.py", "mark_safe(text)"),
        (marks_safe, "runs/x.py", "format_html(f'<b>{x}</b>')"),
        (html_in_code, "runs/x.py", "format_html('<b style=\"x\">{}</b>', x)"),
    ],
)
def test_each_rule_finds_what_it_is_about(rule, file, text):
    assert breaches_of(rule, file, text)


@pytest.mark.parametrize(
    "html",
    [
        '<p style="color:red">',
        '<a onclick="go()">',
        "<script>go()</script>",
        '<script type="module">go()</script>',
        '<div hx-on:click="go()">',
        '<a href="javascript:go()">',
        "<div hx-vals='js:{a: 1}'>",
        "<style>",
    ],
)
def test_each_inline_thing_is_found(html):
    assert inline_in(html)


@pytest.mark.parametrize(
    "html", ['<script src="{% static x %}" defer></script>', "{# style='x' #}", '<div data-on="x">', "<p>on = off</p>"]
)
def test_what_is_not_inline_is_left_alone(html):
    assert inline_in(html) == []


def test_the_rules_read_all_of_the_code():
    names = {name(path) for path in code()}
    named = {*WRITERS, *MAKERS, *LONGER, *SAVERS, *RAW_SQL, *CLOCKS, *READS_ENVIRONMENT, *HANDS_ON_ENVIRONMENT, *MARKS_SAFE, *FRAMED}
    assert named <= names, "a file moved"
    assert len(names) > 100
