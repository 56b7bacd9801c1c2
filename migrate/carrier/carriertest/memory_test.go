package carriertest_test

import (
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
)

func TestPair(t *testing.T) {
	carriertest.Run(t, func(*testing.T) (a, b carrier.Carrier) { return carriertest.Pair() })
}
