// Package profilefile reads what people keep in files: a ProxyProfile in YAML, strictly, and a
// proxy's credentials in a folder like a mounted Secret. What cannot be used is said with its line,
// its field and what to write instead, and never with a secret in it.
package profilefile
