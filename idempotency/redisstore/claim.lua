-- A claim: idempotency.Decide, then idempotency.Grant if the claim is granted.
-- KEYS: record; last fence of the bucket; clock record.
-- ARGV: largest time seen by the caller, token, fingerprint_spec, request_hash, lease, TTL, resend, run again, then
-- names and values of the fields copied from the claim to a new record.
-- Durations have the form of times or are 'forever'; resend '' means never.
local token, spec, hash, lease, ttl, resend, again = unpack(ARGV, 2, 8)

if stepped ~= '' then
  -- Without memory for this write the next claim detects the step again.
  redis.pcall('HSET', KEYS[3], 'high', now, 'held', stepped, 'step', string.format('%d', step))
  recorded = now
end

local ended = found.status == 'succeeded' or found.status == 'failed'
local expired = ended and found.expires_at ~= '' and now >= found.expires_at

-- session returns the time in a token. Lua compares strings by the locale of the server.
local function session(t)
  local n = 0
  for _, b in ipairs({string.byte(t, 7, 12)}) do n = n * 256 + b end
  return n
end

-- succeeds is Token.Succeeds.
local function succeeds(earlier)
  return earlier ~= '' and string.sub(earlier, 1, 6) == string.sub(token, 1, 6) and session(earlier) < session(token)
end

local decision
if found.status == '' or found.status == 'released' or expired then
  decision = 'new'
elseif found.fingerprint_spec ~= spec then
  decision = 'incomparable'
elseif found.request_hash ~= hash then
  decision = 'conflict'
elseif found.status == 'failed' then
  decision = 'new'
elseif found.status == 'succeeded' then
  decision = 'duplicate'
elseif found.token == token then
  decision = 'renewed'
elseif now < found.lease_until and not succeeds(found.token) then
  decision = 'in progress'
elseif now < found.resend_until or again == '1' then
  decision = 'reclaimed'
else
  decision = 'unresolved'
end

local function add(n, by) return string.format('%d', (tonumber(n) or 0) + by) end

if decision == 'renewed' then
  set('attempts', add(found.attempts, 1))
elseif decision == 'reclaimed' then
  set('attempts', add(found.attempts, 1))
  set('prior_status', 'in_progress')
  set('prior_created_at', '')
  set('prior_expires_at', '')
elseif decision == 'new' then
  local before = {}
  for name, value in pairs(found) do before[name] = value end
  for _, name in ipairs(fields) do set(name, '') end
  for i = 9, #ARGV, 2 do set(ARGV[i], ARGV[i + 1]) end
  set('doubt_since', now)
  set('created_at', now)
  if resend ~= '' then set('resend_until', after(resend)) end
  if ttl ~= 'forever' then set('expires_at', after(ttl)) end
  set('generation', add(before.generation, 1))
  set('attempts', '1')
  if before.status == 'failed' and not expired then
    set('generation', before.generation)
    set('attempts', add(before.attempts, 1))
    set('failure', before.failure)
    set('prior_status', 'failed')
    set('prior_created_at', before.created_at)
    set('prior_expires_at', before.expires_at)
  elseif before.status == 'released' then
    set('generation', before.generation)
  end
else
  return answer(decision)
end

set('lease_until', after(lease))
if decision ~= 'renewed' then
  local last = tonumber(redis.call('GET', KEYS[2])) or 0
  local ms = tonumber(string.sub(now, 1, 15))
  local fence = string.format('%d', math.max(last + 1, ms, step + 1))
  -- The first write decides whether the server has memory for all writes.
  local written = redis.pcall('SET', KEYS[2], fence)
  if written.err then
    if string.sub(written.err, 1, 4) == 'OOM ' and decision == 'new' then return answer('full') end
    return written
  end
  -- Other stores see only the clock record. Do not compare with the caller's largest time.
  if seconds(now) > seconds(recorded) then redis.call('HSET', KEYS[3], 'high', now) end
  set('status', 'in_progress')
  set('token', token)
  set('fence', fence)
end
save()
redis.call('PERSIST', KEYS[1])
return answer(decision)
