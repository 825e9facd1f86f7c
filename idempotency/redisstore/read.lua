-- One lookup.
-- KEYS: the record.
return answer('read')
