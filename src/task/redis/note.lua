-- Says how it goes: the message.
if not runs() then
  return { 'none' }
end
redis.call('HSET', KEYS[1], 'message', ARGV[1])
changed()
return { 'ok' }
