//go:build ablation

package session

// Without is what a measurement switches off. It must not change while there are endpoints.
var Without Mechanism

func without(m Mechanism) bool { return Without&m != 0 }
