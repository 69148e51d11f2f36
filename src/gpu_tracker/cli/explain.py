"""List the rules that judge a run, or explain one of them."""

from __future__ import annotations

from ..analysis.findings.judge import Changes, find_limits
from ..analysis.findings.table import RULES, find_rule
from ..api.reporting import read_changes
from ..reports.contract import fit
from ..reports.explanation import explain_rule, list_rules
from .options import Parser, add_rules
from .output import Output


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    options = make_parser().parse_args(arguments)
    changes = read_changes(options.rules) or Changes()
    output = Output(None)
    view = output.find_view(1)
    if options.rule is None:
        text = list_rules(RULES, changes, view.columns)
    else:
        rule = find_rule(options.rule)
        text = explain_rule(
            rule, find_limits(rule, changes), is_off=rule.name in changes.off, columns=view.columns
        )
    output.write(fit(text, view), otherwise=1)
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker explain", description=__doc__)
    parser.add_argument("rule", metavar="RULE", nargs="?", help="the rule to explain, such as gpu-low")
    parser.offers["rule"] = tuple(rule.name for rule in RULES)
    add_rules(parser)
    return parser
