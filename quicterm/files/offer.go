package files

import "fmt"

// OfferDir is the directory of the links to files that are offered to a client, from the home directory on. Their names
// are those of [Offer], and get one of the suffixes: a client that refuses a file removes its link.
const (
	OfferDir = ".cache/quicterm/offer"

	OfferSaving = ".saving"
	OfferSaved  = ".saved"
	OfferFailed = ".failed"
)

// Offer returns the name of an offer's link.
func Offer(id uint64) string { return fmt.Sprintf("%016x", id) }
