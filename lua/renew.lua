-- Prolong the lease, or mark the checkpoint: the rows "renew" of step.
--
-- ARGV[1]  flags 1 (1 mark the checkpoint), owner 16, not after 7, lease 5, expire 5, doubt 5 (ms)
-- ARGV[3]  only when nothing was found without it, what the owner knows of its record:
--          answered 7, head 1 (16 fingerprint, 32 token), attempt 4, fence 7, since 7, marks 1,
--          [fingerprint 16], [subject 16, until 7]
-- reply    R renewed · B built again · N nothing here · G lost · L late · D damaged

local flags, me, not_after, lease, keep, doubt = struct.unpack('>Bc16I7I5I5I5', ARGV[1])

if now > not_after then
  return reply('L')
end
if damaged then
  return reply('D')
end

if not raw then
  if not ARGV[3] then
    return reply('N')
  end
  local answered, at
  answered, head, attempt, fence, since, marks, at = struct.unpack('>I7BI4I7I7B', ARGV[3])
  if flags % 2 > 0 or not marked(1) or math.max(now - answered, 0) >= keep * 1000 then
    return reply('G')
  end
  expire, owner = keep, me
  write_processing(front(head, string.sub(ARGV[3], at)), now + lease * 1000, keep, doubt)
  return reply('B')
end

if status ~= 0 or owner ~= me or marked(8) then
  return reply('G')
end
if flags % 2 > 0 and not marked(1) then
  marks = marks + 1
end
write_processing(string.sub(raw, 1, state_at - 1), now + lease * 1000, keep, doubt)
return reply('R')
