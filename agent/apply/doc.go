// Package apply is the transaction that changes a host and loses nothing: it asks before it
// restarts, journals every step before it takes it, arms a dead-man that undoes the change when
// nobody finishes it, restarts daemons with proof, proves the result, and undoes what failed.
package apply
