-- Appends a message. Arguments: stream, position, message, replay (not '' closes the stream), linger,
-- events, bytes, age, error ('' keeps the message, any other text replaces it for later followers),
-- trim (not '' drops the earlier messages, too).
-- The position makes an append idempotent, so a writer that received no reply may retry.
local stream, position = ARGV[4], tonumber(ARGV[5])
local log = redis.call('HMGET', KEYS[1], 'last', 'until')
local last = tonumber(log[1] or '-1')
if position <= last then
  return { 'ok' }
end
if last < 0 or log[2] then
  return { 'none' }
end
-- A failover has lost acknowledged messages, and a stream must not have gaps.
if position > last + 1 then
  return { 'none' }
end

local message, replay = ARGV[6], tonumber(ARGV[7])
if ARGV[12] ~= '' then
  if redis.call('HEXISTS', KEYS[1], 'channel') == 1 then
    -- Only the present follower receives the message.
    replay = 0
  else
    message = ARGV[12]
    if ARGV[13] ~= '' then
      redis.call('DEL', key('stream', session, stream))
      redis.call('HSET', KEYS[1], 'trimmed', digits(last), 'bytes', 0)
      redis.call('HDEL', KEYS[1], 'since')
    end
  end
end

-- Before the push, which wakes the follower: it must see both.
if replay then
  close(stream, replay, tonumber(ARGV[8]))
end

push(session, stream, message, { events = tonumber(ARGV[9]), bytes = tonumber(ARGV[10]), age = tonumber(ARGV[11]) })
return { 'ok' }
