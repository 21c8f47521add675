-- Keeps the text ARGV[1] in the note KEYS[1] for ARGV[2] ms.
redis.call('HSET', KEYS[1], 'text', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
