-- Appends a message. Arguments: stream, position, message, replay (not '' closes the
-- stream), linger, events, bytes, age.
-- Idempotent by position, so a writer that received no reply may retry.
local stream, position = ARGV[4], tonumber(ARGV[5])
local log = redis.call('HMGET', KEYS[1], 'last', 'until')
local last = tonumber(log[1] or '-1')
if position <= last then
  return { 'ok' }
end
if last < 0 or log[2] then
  return { 'none' }
end
-- A failover lost acknowledged messages. A stream must not have gaps.
if position > last + 1 then
  return { 'none' }
end
-- Before the push, which wakes the follower: it must see both.
if ARGV[7] ~= '' then
  close(stream, tonumber(ARGV[7]), tonumber(ARGV[8]))
end
push(session, stream, ARGV[6], { events = tonumber(ARGV[9]), bytes = tonumber(ARGV[10]), age = tonumber(ARGV[11]) })
return { 'ok' }
