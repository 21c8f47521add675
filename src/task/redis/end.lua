-- Ends a task that has not ended, and tells whoever runs it, unless it is they
-- who do: the end; what their replica's channel begins with, the message.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return { 'none' }
end
if not runs() then
  return { 'ok' }
end
forget_questions()
redis.call('HSET', KEYS[1], 'end', ARGV[1])
changed()
if ARGV[2] then
  tell(ARGV[2] .. redis.call('HGET', KEYS[1], 'runner'), ARGV[3])
end
return { 'ok' }
