// Package pull has a container runtime fetch an image over the network and says what of it really
// arrived: images and layers that a runtime already holds are not transferred again, so an image
// is removed first, what is still held is listed, and only what is new afterwards counts.
//
// It speaks to a runtime's own socket (the CRI and containerd's read-only content API, or Docker's
// API), because a pull by a client-side library would run with the caller's environment and prove
// nothing about the daemon's. It connects when asked to and holds nothing open afterwards.
package pull
