-- An ending: idempotency.ApplyEnding for a claim without an ending. In all other cases the
-- script returns the record, and the caller decides.
-- KEYS: record.
-- ARGV: fence, 'completed', response, message_id, sequence_number
--    or fence, 'failed', proof ('none', 'claim' or 'all'), failure
--    or fence, 'released'
--    or fence, 'extended', lease as a duration.
if found.status ~= 'in_progress' or found.token == '' or found.fence ~= ARGV[1] then
  return answer('ended')
end

local kind = ARGV[2]
local earlier = found.lease_until
if now < earlier then earlier = now end
local final = false

if kind == 'completed' then
  set('status', 'succeeded')
  set('response', ARGV[3])
  set('message_id', ARGV[4])
  set('sequence_number', ARGV[5])
  set('failure', '')
  set('token', '')
  final = true
elseif kind == 'failed' then
  set('failure', ARGV[4])
  if ARGV[3] == 'none' then
    set('lease_until', earlier)
  elseif ARGV[3] == 'claim' and found.prior_status == 'in_progress' then
    set('lease_until', earlier)
    set('token', '')
  else
    set('status', 'failed')
    set('token', '')
    final = true
  end
elseif kind == 'extended' then
  local extended = after(ARGV[3])
  if extended > found.lease_until then set('lease_until', extended) else return {'made'} end
else
  set('token', '')
  set('lease_until', earlier)
  if found.prior_status == 'failed' then
    set('status', 'failed')
    set('created_at', found.prior_created_at)
    set('expires_at', found.prior_expires_at)
    final = true
  elseif found.prior_status ~= 'in_progress' then
    set('status', 'released')
    final = true
  end
end

if final then
  set('doubt_since', '')
  set('prior_status', '')
  set('prior_created_at', '')
  set('prior_expires_at', '')
end
save()

-- Only records with a proven outcome may be removed, and only after a repeated call
-- could see them.
if final then
  local from = now
  if found.status == 'released' then
    forget(from)
  elseif found.expires_at ~= '' then
    if found.expires_at > from then from = found.expires_at end
    forget(from)
  end
end
return {'made'}
