const { EnvHttpProxyAgent, request } = require('undici')
const dispatcher = new EnvHttpProxyAgent()
async function main () {
  for (const url of process.argv.slice(2)) {
    try {
      const { body } = await request(url, { dispatcher, headersTimeout: 3000 })
      await body.dump()
    } catch {}
  }
}
main().then(() => process.exit(0))
