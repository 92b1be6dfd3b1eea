-- Take the record, or say why not: the rows "claim" of step.
--
-- ARGV[1]  flags 1 (1 fingerprint, 2 subject, 4 is the checkpoint, 8 rerun, 16 recover, 32 wait),
--          owner 16, not after 7, limit 3, lease 5, expire 5, doubt 5 (ms),
--          [fingerprint 16], [subject 16]
-- reply    C claimed: fence 7, attempt 4, since 7, marks 1, [subject 16, until 7]
--          P in progress: since 7, lease until 7 · S success, F failed: payload
--          s success without · U outcome unknown · X refused · M mismatch · T token rejected
--          E ended · L late · D damaged

local flags, me, not_after, limit, lease, keep, doubt, at =
  struct.unpack('>Bc16I7I3I5I5I5', ARGV[1])
local my_fingerprint, my_subject = '', nil
if flags % 2 > 0 then
  my_fingerprint = string.sub(ARGV[1], at, at + 15)
  at = at + 16
end
if flags % 4 > 1 then
  my_subject = string.sub(ARGV[1], at, at + 15)
end

if now > not_after then
  return 'L' .. stamp
end
if damaged then
  return 'D' .. stamp
end

local fence, attempt = 0, 0
local my_marks = flags % 8 > 3 and 1 or 0
if not raw then
  if my_subject then
    return 'T' .. stamp
  end
else
  if (token and string.sub(token, 1, 16)) ~= my_subject then
    return 'T' .. stamp
  end
  if fingerprint and fingerprint ~= my_fingerprint then
    return 'M' .. stamp
  end
  if owner == me then
    if status == 0 and marks % 16 < 8 then
      -- A resend is told what the attempt was told first.
      if marks % 2 == 1 and marks < 32 and doubt > keep then
        keep = doubt
      end
      local ends = struct.pack('>I7', now + lease * 1000)
      local state = string.sub(raw, state_at, state_at + 7) .. ends .. string.sub(raw, -6)
      redis.call('SET', key, string.sub(raw, 1, state_at - 1) .. state, 'PXAT', last_ms + keep)
      return 'C' .. stamp .. string.sub(raw, 7, 13) .. string.sub(raw, 3, 6)
        .. string.sub(raw, state_at + 1, state_at + 7) .. string.char(marks) .. (token or '')
    end
    if status ~= 1 and status ~= 3 then
      return 'E' .. stamp
    end
  end
  if status == 1 or status == 2 and head > 127 then
    if head < 128 then
      return 's' .. stamp
    end
    return (status == 1 and 'S' or 'F') .. stamp .. string.sub(raw, state_at + 7)
  elseif status == 3 then
    return 'X' .. stamp
  elseif status == 0 then
    if struct.unpack('>I7', raw, state_at + 8) > now then
      if flags > 31 and marks % 32 < 16 then
        local set = redis.pcall('SETRANGE', key, state_at - 1, string.char(marks + 16))
        -- Out of memory nothing is pushed: the waiter looks now and then.
        if type(set) == 'table' and not string.find(set.err, 'OOM', 1, true) then
          return set
        end
      end
      return 'P' .. stamp .. string.sub(raw, state_at + 1, state_at + 14)
    end
    if marks % 2 == 0 then
      my_marks = my_marks + 2
    elseif flags % 32 > 15 then
      my_marks = 7
    elseif flags % 16 > 7 then
      my_marks = my_marks + 6
    else
      return 'U' .. stamp
    end
  end
  attempt, fence = struct.unpack('>I4I7', raw, 3)
  -- A copy of a claim that is older than the record it would replace: its attempt has ended since.
  if not_after - limit * 1000 < fence and fence <= now then
    return 'L' .. stamp
  end
end

fence = math.max(fence + 1, now)
attempt = math.min(attempt + 1, 4294967295)
if marks % 32 > 15 then
  my_marks = my_marks + 16
end
if flags % 16 > 7 then
  my_marks = my_marks + 32
end
local my_head = (flags % 2 > 0 and 16 or 0) + (token and 32 or 0) + (kept and 64 or 0)
local bound = my_fingerprint .. (token or '') .. (kept or '')
local ends = now + lease * 1000
local value = struct.pack('>BBI4I7c16c0BI7I7I6', 1, my_head, attempt, fence, me, bound, my_marks, now, ends, keep)
if my_marks % 2 == 1 and my_marks < 32 and doubt > keep then
  keep = doubt
end
redis.call('SET', key, value, 'PXAT', last_ms + keep)
return struct.pack('>c1I7I7I4I7B', 'C', now, fence, attempt, now, my_marks) .. (token or '')
