package configs

import "github.com/quicterm/quicterm/quicterm/hub"

// checkHub checks the URL of a hub, or that there is none.
func checkHub(url string) error {
	if url == "" {
		return nil
	}
	if _, err := hub.ParseAddress(url); err != nil {
		return wrongf("hub", "%w", err)
	}
	return nil
}

func checkHubName(name string) error {
	if name == "" {
		return nil
	}
	if err := hub.CheckName(name); err != nil {
		return wrongf("hub_name", "hub_name: %w", err)
	}
	return nil
}
