//! Of the scripts.

use crate::known::Reason;

/// By reason.
pub(crate) const SCRIPTS: &[Reason] = &[
    (
        "a record with another status has no marks: whoever asks for them has asked for the status",
        &[("record.lua", "local marks = 0", "local marks = 1")],
    ),
    (
        "a doubt comes only with a takeover: its bit is never the only one",
        &[
            (
                "settle.lua",
                "local is_unused = outcome == 4 or outcome == 6 or outcome == 8 and marks % 8 < 4",
                "local is_unused = outcome == 4 or outcome == 6 or outcome == 8 and marks % 8 <= 4",
            ),
            (
                "settle.lua",
                "local is_unused = outcome == 4 or outcome == 6 or outcome == 8 and marks % 8 < 4",
                "local is_unused = outcome == 4 or outcome == 6 or outcome == 8 and marks % 8 < 5",
            ),
        ],
    ),
    (
        "a third value is not assigned",
        &[(
            "record.lua",
            "version, head = string.byte(raw, 1, 2)",
            "version, head = string.byte(raw, 1, 3)",
        )],
    ),
    (
        "the status 15 is none: such a record is damaged either way",
        &[
            (
                "record.lua",
                "if head % 32 > 15 then",
                "if head % 32 >= 15 then",
            ),
            (
                "record.lua",
                "if head % 64 > 31 then",
                "if head % 64 >= 31 then",
            ),
            (
                "record.lua",
                "if head % 128 > 63 then",
                "if head % 128 >= 63 then",
            ),
            (
                "claim.lua",
                "if status == 1 or status == 2 and head > 127 then",
                "if status == 1 or status == 2 and head >= 127 then",
            ),
            (
                "record.lua",
                "damaged = rest ~= 21 or head > 127 or marks > 63",
                "damaged = rest ~= 21 or head >= 127 or marks > 63",
            ),
        ],
    ),
    (
        "an attempt in progress has no payload: with that flag it is damaged either way",
        &[
            (
                "record.lua",
                "if head % 128 > 63 then",
                "if head % 129 > 63 then",
            ),
            (
                "record.lua",
                "damaged = rest < 7 or rest > 7 and head < 128",
                "damaged = rest < 7 or rest > 7 and head <= 128",
            ),
            (
                "record.lua",
                "damaged = rest < 7 or rest > 7 and head < 128",
                "damaged = rest < 7 or rest > 7 and head < 129",
            ),
            (
                "claim.lua",
                "if status == 1 or status == 2 and head > 127 then",
                "if status == 1 or status == 2 and head > 128 then",
            ),
            ("claim.lua", "if head < 128 then", "if head <= 128 then"),
            ("claim.lua", "if head < 128 then", "if head < 129 then"),
        ],
    ),
    (
        "any number beyond the marks says that there are none",
        &[(
            "record.lua",
            "marks = string.byte(raw, state_at) or 64",
            "marks = string.byte(raw, state_at) or 65",
        )],
    ),
    (
        "nothing stands behind the last part of an argument",
        &[(
            "claim.lua",
            "my_subject = string.sub(ARGV[1], at, at + 15)",
            "my_subject = string.sub(ARGV[1], at, at + 16)",
        )],
    ),
    (
        "the time is larger than any fence of a key that has none",
        &[
            (
                "claim.lua",
                "local fence, attempt = 0, 0",
                "local fence, attempt = 1, 0",
            ),
            ("refuse.lua", "local fence = 0", "local fence = 1"),
        ],
    ),
    (
        "the marks are odd there, and 32 is even",
        &[
            (
                "claim.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 33 and doubt > keep then",
            ),
            (
                "claim.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks <= 32 and doubt > keep then",
            ),
            (
                "renew.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks <= 32 and doubt > keep then",
            ),
            (
                "renew.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 33 and doubt > keep then",
            ),
            (
                "settle.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks <= 32 and doubt > keep then",
            ),
            (
                "settle.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 33 and doubt > keep then",
            ),
            (
                "claim.lua",
                "if my_marks % 2 == 1 and my_marks < 32 and doubt > keep then",
                "if my_marks % 2 == 1 and my_marks <= 32 and doubt > keep then",
            ),
            (
                "claim.lua",
                "if my_marks % 2 == 1 and my_marks < 32 and doubt > keep then",
                "if my_marks % 2 == 1 and my_marks < 33 and doubt > keep then",
            ),
        ],
    ),
    (
        "the larger of two equal numbers is either",
        &[
            (
                "claim.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 32 and doubt >= keep then",
            ),
            (
                "renew.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 32 and doubt >= keep then",
            ),
            (
                "settle.lua",
                "if marks % 2 == 1 and marks < 32 and doubt > keep then",
                "if marks % 2 == 1 and marks < 32 and doubt >= keep then",
            ),
            (
                "claim.lua",
                "if my_marks % 2 == 1 and my_marks < 32 and doubt > keep then",
                "if my_marks % 2 == 1 and my_marks < 32 and doubt >= keep then",
            ),
        ],
    ),
    (
        "the outcome 3 leaves a mark and does not come here",
        &[
            (
                "settle.lua",
                "local my_head = head % 64 + (outcome < 3 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)",
                "local my_head = head % 64 + (outcome <= 3 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)",
            ),
            (
                "settle.lua",
                "local my_head = head % 64 + (outcome < 3 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)",
                "local my_head = head % 64 + (outcome < 4 and 1 or 2) + (kept and 64 or 0) + (has_payload and 128 or 0)",
            ),
        ],
    ),
    (
        "what is told on Redis 6.2 is told as exactly on a later one",
        &[(
            "expiry.lua",
            "if type(last) == 'number' then",
            "if false then",
        )],
    ),
    (
        "a success, a failure or a mark has no head 127, and none that is 128",
        &[
            (
                "settle.lua",
                "local is_same_kind = outcome == same and has_payload == (head > 127)",
                "local is_same_kind = outcome == same and has_payload == (head >= 127)",
            ),
            (
                "settle.lua",
                "local is_same_kind = outcome == same and has_payload == (head > 127)",
                "local is_same_kind = outcome == same and has_payload == (head > 128)",
            ),
            (
                "settle.lua",
                "elseif status == 1 and head > 127 then",
                "elseif status == 1 and head >= 127 then",
            ),
            (
                "settle.lua",
                "elseif status == 1 and head > 127 then",
                "elseif status == 1 and head > 128 then",
            ),
            (
                "refuse.lua",
                "elseif status == 1 or status == 2 and head > 127 then",
                "elseif status == 1 or status == 2 and head >= 127 then",
            ),
            (
                "refuse.lua",
                "elseif status == 1 or status == 2 and head > 127 then",
                "elseif status == 1 or status == 2 and head > 128 then",
            ),
            (
                "refuse.lua",
                "elseif status == 1 and head < 128 then",
                "elseif status == 1 and head <= 128 then",
            ),
            (
                "refuse.lua",
                "elseif status == 1 and head < 128 then",
                "elseif status == 1 and head < 129 then",
            ),
        ],
    ),
    (
        "an echo is sent only by who has passed its checkpoint and does not mark it, and only for a success",
        &[
            (
                "renew.lua",
                "if flags % 2 > 0 or marks % 2 == 0 or age >= keep * 1000 then",
                "if flags % 3 > 0 or marks % 2 == 0 or age >= keep * 1000 then",
            ),
            (
                "renew.lua",
                "if flags % 2 > 0 or marks % 2 == 0 or age >= keep * 1000 then",
                "if flags % 2 > 1 or marks % 2 == 0 or age >= keep * 1000 then",
            ),
            (
                "renew.lua",
                "if flags % 2 > 0 or marks % 2 == 0 or age >= keep * 1000 then",
                "if flags % 2 > 0 and marks % 2 == 0 or age >= keep * 1000 then",
            ),
            (
                "settle.lua",
                "if outcome > 2 or age >= keep * 1000 then",
                "if outcome > 3 or age >= keep * 1000 then",
            ),
        ],
    ),
    (
        "to be lost, and to find nothing though an echo was sent, is told to the owner as one",
        &[("renew.lua", "return 'G' .. stamp", "return 'N' .. stamp")],
    ),
    (
        "the least age is less than any retention",
        &[
            (
                "renew.lua",
                "local age = math.max(now - struct.unpack('>I7', echo), 0)",
                "local age = math.max(now - struct.unpack('>I7', echo), 1)",
            ),
            (
                "settle.lua",
                "local age = math.max(now - struct.unpack('>I7', echo), 0)",
                "local age = math.max(now - struct.unpack('>I7', echo), 1)",
            ),
        ],
    ),
    (
        "only the first 16 bytes are packed",
        &[
            (
                "issue.lua",
                "local nobody = string.rep('\\0', 16)",
                "local nobody = string.rep('\\0', 17)",
            ),
            (
                "refuse.lua",
                "local nobody = string.rep('\\0', 16)",
                "local nobody = string.rep('\\0', 17)",
            ),
        ],
    ),
    (
        "33 is odd, and of odd ones the same is told before",
        &[(
            "refuse.lua",
            "elseif status == 0 and (marks % 2 == 1 or marks > 33 and marks % 4 == 2) then",
            "elseif status == 0 and (marks % 2 == 1 or marks >= 33 and marks % 4 == 2) then",
        )],
    ),
    (
        "no key ends in 1970",
        &[
            (
                "forget.lua",
                "ends = math.max(ends < 0 and last_ms + 60000 or ends, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)",
                "ends = math.max(ends <= 0 and last_ms + 60000 or ends, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)",
            ),
            (
                "forget.lua",
                "ends = math.max(ends < 0 and last_ms + 60000 or ends, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)",
                "ends = math.max(ends < 1 and last_ms + 60000 or ends, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)",
            ),
            (
                "forget.lua",
                "ends = math.max(ends < 0 and last_ms + 60000 or ends, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)",
                "ends = math.max(ends < 0 and last_ms + 60000 or ends, kept and struct.unpack('>I7', kept) / 1000 - 1 or 1)",
            ),
            (
                "settle.lua",
                "local ends = math.max(last_ms + mark, kept and struct.unpack('>I7', kept) / 1000 - 1 or 0)",
                "local ends = math.max(last_ms + mark, kept and struct.unpack('>I7', kept) / 1000 - 1 or 1)",
            ),
            (
                "peek.lua",
                "local expires = last < 0 and 2 ^ 53 - 1 or (last + 1) * 1000",
                "local expires = last <= 0 and 2 ^ 53 - 1 or (last + 1) * 1000",
            ),
            (
                "peek.lua",
                "local expires = last < 0 and 2 ^ 53 - 1 or (last + 1) * 1000",
                "local expires = last < 1 and 2 ^ 53 - 1 or (last + 1) * 1000",
            ),
        ],
    ),
    (
        "with all four of them a claim is itself the checkpoint: its marks come to 7 either way",
        &[(
            "claim.lua",
            "elseif flags % 32 > 15 then",
            "elseif flags % 32 >= 15 then",
        )],
    ),
    (
        "there is one flag",
        &[(
            "renew.lua",
            "if flags % 2 > marks % 2 then",
            "if flags % 3 > marks % 2 then",
        )],
    ),
    (
        "what is refused has passed no checkpoint: its marks are even",
        &[(
            "refuse.lua",
            "if marks % 32 > 15 then",
            "if marks % 32 >= 15 then",
        )],
    ),
];
