-- Common head of all scripts, after the clock and the field names.
-- Times are 12 digits of seconds and 6 digits of microseconds, because Lua numbers
-- cannot hold the microseconds of all possible times. '' is the zero time.
local now = clock()
local found, changed = {}, {}
for i, value in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
  found[fields[i]] = value or ''
end

local function seconds(t) return tonumber(string.sub(t, 1, 12)) or 0 end

-- Claims and lookups compare the clock with the largest time seen, in the clock record
-- (the last of KEYS) or by the caller (the first of ARGV). After a backward step the time
-- since earlier attempts is unknown.
-- high is the largest time since the last step; recorded is the clock record's value of
-- high; held is the largest time before the last step; step is larger than all fences
-- before the last step.
local stepped, step, recorded = '', 0, ''
local watched = #KEYS > 1
if watched then
  local values = redis.call('HMGET', KEYS[#KEYS], 'high', 'held', 'step')
  local held = values[2] or ''
  recorded, step = values[1] or '', tonumber(values[3]) or 0
  local high = recorded
  if ARGV[1] > high and seconds(ARGV[1]) > seconds(held) + tolerance then high = ARGV[1] end
  if seconds(high) > seconds(now) + tolerance then
    stepped = high
    step = math.max(step, tonumber(string.sub(high, 1, 15))) + 1000000
  end
  -- Only an operator can permit the resend of an operation claimed before the step.
  if found.status == 'in_progress' and tonumber(found.fence) <= step and found.resend_until ~= '' and found.resend_until < distant then
    found.resend_until, changed.resend_until = '', ''
    found.failure, changed.failure = set_back, set_back
  end
end

local function set(name, value)
  found[name] = value
  changed[name] = value
end

local function save()
  local pairs_of = {}
  for name, value in pairs(changed) do
    pairs_of[#pairs_of + 1] = name
    pairs_of[#pairs_of + 1] = value
  end
  redis.call('HSET', KEYS[1], unpack(pairs_of))
end

-- after returns now plus a duration; 'forever' is a duration.
local function after(d)
  if d == 'forever' then return distant end
  local s = tonumber(string.sub(now, 1, 12)) + tonumber(string.sub(d, 1, 12))
  local us = tonumber(string.sub(now, 13)) + tonumber(string.sub(d, 13))
  if us >= 1000000 then s, us = s + 1, us - 1000000 end
  return string.format('%012d%06d', s, us)
end

-- forget sets the record's removal by the server to an hour after a time.
local function forget(from)
  redis.call('PEXPIREAT', KEYS[1], string.format('%d', tonumber(string.sub(from, 1, 15)) + 3600001))
end

local function answer(word)
  local out = {word, now}
  for i, name in ipairs(fields) do out[i + 2] = found[name] end
  out[#out + 1] = stepped
  return out
end
