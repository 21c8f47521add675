-- Appends a message to the session's standalone stream, if a connection follows it. Arguments: message,
-- events, bytes, age.
local own = redis.call('HGET', KEYS[1], 'own')
if not own then
  return { 'none' }
end
if redis.call('HEXISTS', key('log', session, own), 'channel') == 0 then
  return { 'nobody' }
end

push(session, own, ARGV[4], { events = tonumber(ARGV[5]), bytes = tonumber(ARGV[6]), age = tonumber(ARGV[7]) })
return { 'ok' }
