"""`anabranch plans ...`: scans that keep objects from being deleted."""

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from anabranch.cli.grammar import Group
from anabranch.cli.options.service import talks
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import counted, instant, size
from anabranch.cli.service.target import Target
from anabranch.core.errors import PlanEnded

if TYPE_CHECKING:
    from anabranch.core.bolt.protocol.scans import Plan, Plans


class Scans(Group):
    """Lists the plans if no other command is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and not set(args) & set(ctx.help_option_names)):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Scans)
def plans() -> None:
    """List scan plans, and end those that hold too much.

    A job that reads a log from the object store plans a scan. Nothing that became garbage after the
    oldest plan was made is deleted. `anabranch plans` is `anabranch plans list`.
    """


@plans.command(name="list")
@talks
def list_plans(target: Target, out: Output) -> None:
    """List the scan plans that are alive, the oldest first, and what they hold."""
    found = target.run(lambda service: service.plans())
    if out.json:
        out.document(_document(found))
        return
    out.table(
        ["PLAN", "LOG", ">FROM", ">TO", "BY", "SINCE", "UNTIL"],
        (
            (
                f"{each.id:016x}",
                each.name,
                str(each.start),
                str(each.end),
                each.by,
                instant(each.began),
                instant(each.expires),
            )
            for each in found.plans
        ),
    )
    if found.plans:
        held = counted(found.held_objects, "object")
        out.say(f"they hold {held} of garbage, {size(found.held_bytes)}")


@plans.command()
@click.argument("plan")
@talks
def end(target: Target, out: Output, plan: str) -> None:
    """End a scan plan, as `list` names it. Its scan fails at its next request."""
    found = target.run(lambda service: service.plans())
    known = next((each for each in found.plans if f"{each.id:016x}" == plan), None)
    if known is None:
        raise PlanEnded(plan, "this service", "it isn't among those that `plans list` shows")
    ending: Plan = known
    target.run(lambda service: service.scan_plan(ending).end())
    if out.json:
        out.document({"ended": plan})
    else:
        out.say(f"plan {plan} of {ending.name} has ended")


@plans.command()
@click.option("--force", is_flag=True, help="Required: reads that are under way may fail.")
@talks
def erase(target: Target, out: Output, force: bool) -> None:
    """Delete all garbage now, and end every scan plan.

    For records that must be gone: trim, squash or delete their log first. What is garbage is
    deleted at once, without the grace that reads under way count on.
    """
    if not force:
        raise click.UsageError("reads and scans that are under way may fail: give --force")
    erased = target.run(lambda service: service.erase_garbage())
    if out.json:
        out.document({"plans": erased.plans, "objects": erased.objects})
    else:
        ended = counted(erased.plans, "plan")
        out.say(f"ended {ended}, and deletes {counted(erased.objects, 'object')}")


def _document(found: "Plans") -> dict[str, object]:
    return {
        "plans": [{**asdict(each), "id": f"{each.id:016x}"} for each in found.plans],
        "held_objects": found.held_objects,
        "held_bytes": found.held_bytes,
    }
