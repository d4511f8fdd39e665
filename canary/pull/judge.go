package pull

// judge says what of a pulled image had to be transferred, from what the runtime held before and
// where the layers are now.
func judge(arrival Arrival, image pulledImage, before *inventory) Arrival {
	arrival.Digest = image.digest
	stored, unpacked := false, false
	for _, l := range image.layers {
		arrival.Size += l.size
		_, had := before.blobs[l.digest]
		switch {
		case had:
			arrival.Held = append(arrival.Held, l.digest)
		case l.stored:
			stored = true
			arrival.Bytes += l.size - min(before.partial[l.digest], l.size)
		case !l.unpacked.IsZero() && !l.unpacked.Before(arrival.Began):
			unpacked = true
			arrival.Bytes += l.size - min(before.partial[l.digest], l.size)
		case !l.unpacked.IsZero():
			// The snapshot is older than the pull, so the runtime did not ask for the blob.
			arrival.Held = append(arrival.Held, l.digest)
		}
	}
	switch {
	case unpacked:
		arrival.JudgedBy = ByUnpacked
	case stored || len(arrival.Held) > 0:
		arrival.JudgedBy = ByContentStore
	}
	return arrival
}
