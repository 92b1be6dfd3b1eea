-- Take the record, or say why not: the rows "claim" of step.
--
-- ARGV[1]  flags 1 (1 fingerprint, 2 subject, 4 is the checkpoint, 8 rerun, 16 recover, 32 wait),
--          owner 16, not after 7, limit 3, lease 5, expire 5, doubt 5 (ms),
--          [fingerprint 16], [subject 16]
-- reply    C claimed: fence 7, attempt 4, since 7, marks 1, token 1, [subject 16, until 7]
--          P in progress: since 7, lease left 7 · S success, F failed: payload · s success without
--          U outcome unknown · X refused · M mismatch · T token rejected · E ended · L late
--          D damaged

local flags, me, not_after, limit, lease, keep, doubt, at =
  struct.unpack('>Bc16I7I3I5I5I5', ARGV[1])
local my_fingerprint, my_subject
if flags % 2 > 0 then
  my_fingerprint, at = struct.unpack('c16', ARGV[1], at)
end
if flags % 4 > 1 then
  my_subject = struct.unpack('c16', ARGV[1], at)
end

-- What the attempt was told first; a resend of its claim is told the same.
local function claimed()
  local answer =
    struct.pack('>c1I7I7I4I7BB', 'C', now, fence, attempt, since, marks, subject and 1 or 0)
  return subject and answer .. struct.pack('>c16I7', subject, token_until) or answer
end

if now > not_after then
  return reply('L')
end
if damaged then
  return reply('D')
end

local takeover, checkpoint = 0, flags % 8 > 3 and 1 or 0
if not raw then
  if my_subject then
    return reply('T')
  end
  fence, attempt = 0, 0
else
  if subject ~= my_subject then
    return reply('T')
  end
  if fingerprint and fingerprint ~= my_fingerprint then
    return reply('M')
  end
  if owner == me then
    if status == 0 and not marked(8) then
      write_processing(string.sub(raw, 1, state_at - 1), now + lease * 1000, keep, doubt)
      return claimed()
    end
    if status ~= 1 and status ~= 3 then
      return reply('E')
    end
  end
  if status == 1 then
    if head > 127 then
      return reply('S') .. string.sub(raw, state_at + 7)
    end
    return reply('s')
  elseif status == 2 and head > 127 then
    return reply('F') .. string.sub(raw, state_at + 7)
  elseif status == 3 then
    return reply('X')
  elseif status == 0 then
    if lease_until > now then
      if flags > 31 and not marked(16) then
        redis.call('SETRANGE', key, state_at - 1, string.char(marks + 16))
      end
      return struct.pack('>c1I7I7I7', 'P', now, since, lease_until - now)
    end
    if not marked(1) then
      takeover = 2
    elseif flags % 32 > 15 then
      takeover, checkpoint = 6, 1
    elseif flags % 16 > 7 then
      takeover = 6
    else
      return reply('U')
    end
  end
  -- A copy of a claim that is older than the record it would replace: its attempt has ended since.
  if not_after - limit * 1000 < fence and fence <= now then
    return reply('L')
  end
end

local bound = my_fingerprint or ''
head = my_fingerprint and 16 or 0
if subject then
  head, bound = head + 32, bound .. struct.pack('>c16I7', subject, token_until)
end
attempt = math.min(attempt + 1, 4294967295)
fence = math.max(fence + 1, now)
marks = checkpoint + takeover + (marked(16) and 16 or 0) + (flags % 16 > 7 and 32 or 0)
since, expire, owner = now, keep, me
write_processing(front(head, bound), now + lease * 1000, keep, doubt)
return claimed()
