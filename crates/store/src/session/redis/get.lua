-- Returns a session's fields and extends its expiry. Arguments: idle.
local record = redis.call('HMGET', KEYS[1], 'own', 'version', 'client', 'level')
if not record[1] then
  return { 'none' }
end
touch(session, record[1], tonumber(ARGV[4]))
return { 'ok', record[2], record[3], record[4] }
