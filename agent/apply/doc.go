// Package apply is the transaction that changes a host and loses nothing: it asks before it
// restarts, journals every step before it takes it, arms a dead-man that undoes the change when
// nobody finishes it, restarts daemons with proof, proves the result, and undoes what failed.
//
// A change is decided at one moment, when the journal says so: until then whoever comes next (the
// same process, the next one, or the dead-man) can undo it, and after it only tidying is left.
// Writing the new files and putting the previous ones back are both idempotent, and a restart is
// recognised by the InvocationID that the journal holds from before it, so every step may be
// taken again.
package apply
