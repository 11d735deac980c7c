create table stream_blocks (
    seq_from bigint not null,
    seq_to bigint not null,
    ts timestamp with time zone not null,
    data bytea not null,
    constraint stream_blocks_width_check check (seq_to >= seq_from and seq_to < seq_from + 2000)
);
select create_hypertable('stream_blocks', by_range('seq_from', 1000000::bigint), create_default_indexes => false);
create unique index stream_blocks_seq_from_idx on stream_blocks (seq_from);
comment on table stream_blocks is 'Stream messages, in a block or more for each transaction; their numbers have no gaps, in commit order';
comment on column stream_blocks.seq_from is 'Number of the first message: one more than the last of the block before';
comment on column stream_blocks.ts is 'When it was published';
comment on column stream_blocks.data is 'As packed by sql/stream_blocks.py';
-- Blocks are compressed already: out of line without another attempt.
alter table stream_blocks alter column data set storage external;
