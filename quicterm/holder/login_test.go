//go:build linux || darwin

package holder

import (
	"reflect"
	"testing"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A daemon that a client comes back to is told all that the daemon of its login has told.
func TestLoginIsTold(t *testing.T) {
	open := &wire.Open{
		Account: "ann", Key: []byte("key"), Scope: "s", NoPTY: true, Proof: "ssh", Reported: "password", Proven: 1700000000,
	}
	told, given := reflect.ValueOf(loginOf(open)), reflect.ValueOf(*open)
	for i := range told.NumField() {
		name := told.Type().Field(i).Name
		if name == "Away" { // it is of the moment
			continue
		}
		got := told.Field(i).Interface()
		if want := given.FieldByName(name).Interface(); !reflect.DeepEqual(got, want) || told.Field(i).IsZero() {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
