// dynalite throws the error of a request that its client has broken off, which ends the
// process (github.com/architect/dynalite/issues/183). The tests break requests off.
process.on('uncaughtException', (err) => {
  if (err.code !== 'ECONNRESET') {
    console.error(err)
    process.exit(1)
  }
})
