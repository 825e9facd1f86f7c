-- The beginning of all scripts, after the clock and the names of the fields.
-- Times are 12 digits of seconds and 6 of microseconds, because Lua's numbers do not
-- hold the microseconds of all times that a record may have. '' is the zero time.
local now = clock()
local found, changed = {}, {}
for i, value in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
  found[fields[i]] = value or ''
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

-- forget has the server remove the record an hour after a time.
local function forget(from)
  redis.call('PEXPIREAT', KEYS[1], string.format('%d', tonumber(string.sub(from, 1, 15)) + 3600001))
end

local function answer(word)
  local out = {word, now}
  for i, name in ipairs(fields) do out[i + 2] = found[name] end
  return out
end
