"""The descriptors between the launching process and one rank, made and given up in the launching process."""

import os

from nbmp import platforms
from nbmp.channels import Channel
from nbmp.launching.board import Row
from nbmp.launching.plan import RankEnds
from nbmp.launching.private import Descriptor, making
from nbmp.launching.record import RankRecord
from nbmp.launching.where.stackfile import StackFile
from nbmp.launching.written.kept import KeptOutput, share_of
from nbmp.launching.written.lines import RankStream, longest_line
from nbmp.memory.segment import Segment


def connect(rank: int, table: Segment, world_size: int) -> tuple[RankRecord, RankEnds]:
    """Make a rank's channel, lifeline and output pipes; our ends are closed in other forked children."""
    with making() as register:
        our_channel, channel = Channel.pair()
        register(our_channel)
        lifeline, our_lifeline = _pipe()
        register(our_lifeline)
        streams, pipes = [], []
        for name in ("stdout", "stderr"):
            our_pipe, pipe = _pipe()
            register(our_pipe)
            platforms.grow_pipe(our_pipe.fileno())
            streams.append(RankStream(rank, name, our_pipe, longest_line(world_size)))
            pipes.append(pipe)
        crash = StackFile()
    row, output = Row(table, rank), KeptOutput(share_of(world_size))
    record = RankRecord(rank, row, our_channel, our_lifeline, (streams[0], streams[1]), crash, output)
    return record, RankEnds(channel, lifeline, pipes[0], pipes[1])


def _pipe() -> tuple[Descriptor, Descriptor]:
    read, write = os.pipe2(os.O_CLOEXEC)
    return Descriptor(read), Descriptor(write)


def disconnect(record: RankRecord) -> None:
    """Close our ends; a rank that runs is killed by that."""
    record.channel.close()
    record.crash.close()
    for end in (record.lifeline, *(stream.pipe for stream in record.streams)):
        end.close()
