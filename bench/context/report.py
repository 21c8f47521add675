"""Stub."""
def text(found):
    return "\n".join(f"{o.task.name:22} {o.way.name:38} {o.variant:10} {'ok ' if o.right else 'NO '} {o.bytes:8} {o.measured.results:8} {o.measured.calls} {o.measured.seconds:.1f} {o.measured.failure or ''}" for o in found)
def write(*_): pass
