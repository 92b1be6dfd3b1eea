-- Finish an attempt: the rows "settle" of step.
--
-- ARGV[1]  outcome 1 (1 success with a result, 2 success, 3 success and forget, 4 failed,
--          5 failed with an error, 6 release, 7 abandon, 8 give up),
--          owner 16, not after 7, expire 5, mark 5, doubt 5 (ms)
-- ARGV[2]  the payload of outcomes 1 and 5, otherwise empty
-- ARGV[3]  only when nothing was found without it, what the owner knows of its record:
--          answered 7, head 1 (16 fingerprint, 32 token), attempt 4, fence 7,
--          [fingerprint 16], [subject 16, until 7]
-- reply    K settled · A adopted · N nothing here · L late · D damaged
--          V superseded: by 1 (0 nothing, 1 processing, 2 success with a result, 3 success,
--          4 failed, 5 issued, 6 refused), [the result]

local outcome, me, not_after, keep, mark, doubt = struct.unpack('>Bc16I7I5I5I5', ARGV[1])
local payload = (outcome == 1 or outcome == 5) and ARGV[2] or nil

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
  answered, head, attempt, fence, at = struct.unpack('>I7BI4I7', ARGV[3])
  if outcome > 2 or math.max(now - answered, 0) >= keep * 1000 then
    return reply('V') .. '\0'
  end
  owner = me
  write_finished(1, string.sub(ARGV[3], at), payload, keep)
  return reply('A')
end

local function superseded()
  if status == 0 then
    return reply('V') .. '\1'
  elseif status == 1 and head > 127 then
    return reply('V') .. '\2' .. string.sub(raw, state_at + 7)
  elseif status == 1 then
    return reply('V') .. '\3'
  elseif status == 2 then
    return reply('V') .. '\4'
  elseif status == 9 then
    return reply('V') .. '\5'
  elseif status == 3 then
    return reply('V') .. '\6'
  end
  return reply('V') .. '\0'
end

if owner ~= me then
  return superseded()
end
if status ~= 0 then
  local is_same = status == 8
    or status == 1 and (outcome == 1 and head > 127 or outcome == 2 and head < 128)
    or status == 2 and (outcome == 5 and head > 127 or outcome == 4 and head < 128)
    or status == 9 and (outcome == 4 or outcome == 6 or outcome == 8)
  if is_same and payload and status < 3 then
    is_same = string.sub(raw, state_at + 7) == payload
  end
  return is_same and reply('K') or superseded()
end
if marked(8) and outcome > 3 then
  return outcome > 6 and reply('K') or superseded()
end

local function close()
  local ends = math.max(ceil_ms(now + mark * 1000), mark_to_keep() or 0)
  write(struct.pack('>BBI4I7c16I7', 1, 72, 0, fence, owner, ends), ends)
end

-- A token handed back keeps its own deadline, and takes a corrected form.
local function issue_again()
  if token_until <= now then
    return close()
  end
  write(front(41, struct.pack('>c16I7', subject, token_until)), token_until)
end

local function give_up()
  marks = marks + 8
  write_processing(string.sub(raw, 1, state_at - 1), now, keep, doubt)
end

local bound = string.sub(raw, 30, bound_end)
if outcome < 3 then
  write_finished(1, bound, payload, keep)
elseif outcome == 5 then
  write_finished(2, bound, payload, keep)
elseif outcome == 3 then
  close()
elseif outcome == 7 then
  give_up()
elseif outcome == 8 and marked(4) then
  marks = marks + (marked(1) and 0 or 1)
  give_up()
elseif subject then
  issue_again()
elseif outcome == 4 then
  write_finished(2, bound, payload, keep)
else
  close()
end

wake()
return reply('K')
