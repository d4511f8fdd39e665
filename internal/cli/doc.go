// Package cli is what every verb's output has in common: the format that was asked for, tables,
// colour where a person looks, progress on what is slow, and the exit code that an error stands
// for. It knows nothing of what is printed.
package cli
