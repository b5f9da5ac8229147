"""`anabranch brokers ...`: the pool, and those that are to leave it."""

import click
from msgspec.structs import asdict

from anabranch.cli.grammar import Group
from anabranch.cli.options.service import talks
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import number
from anabranch.cli.service.target import Target


class Pool(Group):
    """Lists the brokers if no other command is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and not set(args) & set(ctx.help_option_names)):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Pool)
def brokers() -> None:
    """List the brokers of the pool, and take some out of it.

    `anabranch brokers` is `anabranch brokers list`.
    """


@brokers.command(name="list")
@talks
def list_brokers(target: Target, out: Output) -> None:
    """List the brokers of the pool and what each serves.

    Any broker can serve any log: these are the ones that logs are placed on, roots apart from
    forks, the forks of one tree together, and exclusive ones alone.
    """
    found = target.run(lambda service: service.brokers())
    if out.json:
        out.document({"brokers": [asdict(each) for each in found]})
        return
    out.table(
        ["BROKER", "ADDRESS", "STATE", ">ROOTS", ">TREES OF FORKS", ">EXCLUSIVE"],
        (
            (
                each.name,
                each.address or "this server",
                each.state,
                number(each.roots),
                number(each.trees),
                number(each.exclusive),
            )
            for each in found
        ),
    )


@brokers.command()
@click.argument("name")
@talks
def drain(target: Target, out: Output, name: str) -> None:
    """Move all logs off a broker, and place no more on it.

    The broker goes on serving clients that ask it until it is stopped. Once it is started again,
    logs are placed on it again.
    """
    target.run(lambda service: service.drain_broker(name))
    if out.json:
        out.document({"draining": name})
    else:
        out.say(f"{name} is draining: no logs are placed on it any more")


@brokers.command()
@click.argument("name")
@talks
def forget(target: Target, out: Output, name: str) -> None:
    """Take a broker that is lost or draining out of the pool.

    If the broker is alive after all, it stops. Once it is started again, it comes back to the pool.
    """
    target.run(lambda service: service.forget_broker(name))
    if out.json:
        out.document({"forgotten": name})
    else:
        out.say(f"{name} is no longer in the pool")
