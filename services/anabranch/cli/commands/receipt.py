"""`anabranch receipt ...`: what an append got in place of a position that is withheld."""

import click

from anabranch.cli.grammar import Group
from anabranch.cli.options.service import talks
from anabranch.cli.options.values import DURATION
from anabranch.cli.render.output import Output
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.core.bolt.protocol.commands import Receipt as Promise
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.errors import BadRequest, ReceiptPending, Refresh, UnknownLog


@click.group(cls=Group)
def receipt() -> None:
    """Redeem receipts of appends whose positions were withheld.

    While a promotable fork is undecided, `anabranch append` to its parent prints a receipt in place
    of a position, and HTTP and the Python client give the same text. After the decision the receipt
    is redeemed for the position.
    """


@receipt.command()
@click.argument("text", metavar="RECEIPT")
@click.option(
    "--wait",
    type=DURATION,
    default="0s",
    show_default=True,
    help="How long to wait for the decision, if the position is still withheld.",
)
@talks
def redeem(target: Target, out: Output, text: str, wait: float) -> None:
    """Print the position behind a receipt.

    Exits with 4 if the position is still withheld: the same command may succeed later.
    """

    async def work(service: Service) -> Settled:
        try:
            return await service.receipt(text).redeem(timeout=wait)
        except UnknownLog:
            reason = "there is no such log: it was deleted, or the receipt is another service's"
            raise BadRequest(f"the receipt {text}", reason) from None

    found = target.run(work)
    if out.json:
        out.document({"log": found.log, "position": found.position})
    else:
        out.say(f"position {found.position} of {found.log}")


@receipt.command()
@click.argument("text", metavar="RECEIPT")
@talks
def show(target: Target, out: Output, text: str) -> None:
    """Show what a receipt is for, and whether it can be redeemed by now."""

    async def work(service: Service) -> tuple[str, int | None, str]:
        """The name of the log, the position if it is settled, and else what withholds it."""
        given = service.receipt(text)
        try:
            name = (await service.log(given.promise.log)).name
        except (Refresh, UnknownLog) as gone:
            name = str(gone.facts["log"])
        try:
            found = await given.redeem(timeout=0)
        except ReceiptPending as pending:
            return name, None, str(pending.facts["fork"])
        return found.log, found.position, ""

    promise = Promise.parse(text)
    log, position, fork = target.run(work)
    if out.json:
        out.document(
            {
                "receipt": text,
                "log": log,
                "generation": promise.generation,
                "provisional": promise.provisional,
                "position": position,
                "withheld_by": fork or None,
            }
        )
        return
    state = f"position {position}" if position is not None else f"withheld: {fork} is undecided"
    out.table(
        ["", ""],
        [
            ("receipt", text),
            ("log", log),
            ("generation", str(promise.generation)),
            ("provisional", str(promise.provisional)),
            ("now", state),
        ],
    )
