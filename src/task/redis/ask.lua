-- Asks a question: key, question.
if not runs() then
  return { 'none' }
end
redis.call('HSET', KEYS[1], 'question:' .. ARGV[1], ARGV[2])
changed()
return { 'ok' }
