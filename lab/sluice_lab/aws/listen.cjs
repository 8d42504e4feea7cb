// Preloaded into an emulator that would listen on every address: with it the emulator listens only on LISTEN_HOST.
const { Server } = require('net')
const { listen } = Server.prototype
Server.prototype.listen = function (...args) {
  const host = process.env.LISTEN_HOST
  if (args[0] !== null && typeof args[0] === 'object') args[0] = { ...args[0], host }
  else if (typeof args[1] === 'string') args[1] = host
  else args.splice(1, 0, host)
  return listen.apply(this, args)
}
