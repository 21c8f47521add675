-- Opens a stream for a call. If the session has too many streams, removes the oldest
-- finished one. Arguments: stream, max, lease, linger, writer, request id.
local stream, max, lease = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'none' }
end

local streams = key('streams', session)
redis.call('ZREMRANGEBYSCORE', streams, '-inf', digits(now))
if redis.call('ZCARD', streams) >= max then
  local removed = false
  for _, old in ipairs(redis.call('ZRANGE', streams, 0, -1)) do
    local log = key('log', session, old)
    if redis.call('HEXISTS', log, 'until') == 1 or redis.call('EXISTS', log) == 0 then
      redis.call('UNLINK', log, key('stream', session, old))
      redis.call('ZREM', streams, old)
      removed = true
      break
    end
  end
  if not removed then
    return { 'many' }
  end
end

local log, till = key('log', session, stream), now + lease + tonumber(ARGV[7])
redis.call('HSET', log, 'last', 0, 'trimmed', 0, 'bytes', 0, 'writer', ARGV[8], 'call', ARGV[9])
redis.call('PEXPIREAT', log, digits(till))
redis.call('ZADD', streams, digits(till), stream)
extend(streams, till)
return { 'ok' }
