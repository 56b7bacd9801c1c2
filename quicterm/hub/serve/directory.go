package serve

import (
	"encoding/hex"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/quota"
)

const (
	// listRate is how many pages of hosts a second a person may ask for, and listBurst how many at once: those of 20 000
	// hosts.
	listRate  = 32
	listBurst = 512

	// maxQuestions bounds the messages to the directory that wait. More are lost: who asks, asks again.
	maxQuestions = 1 << 14
)

// A directory knows what hosts have announced. It says nothing of a host that is not connected.
type directory struct {
	hub   *Hub
	rates *quota.Rates[hub.UserID]

	mu      sync.Mutex
	entries map[string]announced // by name
}

// An announced is an entry and the connection that has sent it.
type announced struct {
	hub.Entry
	by *guest
}

func newDirectory(h *Hub) *directory {
	return &directory{hub: h, rates: quota.NewRates[hub.UserID](listRate, listBurst), entries: make(map[string]announced)}
}

// attach takes messages from NATS, by the hub's own connection. An answer goes to a subject of who has asked, never to one
// that a message names: it would lend the hub's permissions to others.
func (d *directory) attach(own *nats.Conn) error {
	for subject, take := range map[string]func(*nats.Msg){
		hub.AnnounceSubject(hub.Any): d.announce,
		hub.ListSubject(hub.Any):     func(m *nats.Msg) { d.list(own, m) },
	} {
		sub, err := own.Subscribe(subject, take)
		if err != nil {
			return err
		}
		if err := sub.SetPendingLimits(maxQuestions, maxUnsent); err != nil {
			return err
		}
	}
	return own.Flush()
}

// announce takes the entry of a host. The subject says which: a host may send to its own alone.
func (d *directory) announce(m *nats.Msg) {
	entry, err := hub.ParseEntry(m.Data)
	if err != nil || m.Subject != hub.AnnounceSubject(entry.Name) {
		d.hub.config.Log.Info("a host announces what is no entry", "subject", m.Subject)
		return
	}
	by := d.hub.front.host(entry.Name)
	if by == nil {
		return
	}
	entry.Since = by.since.UTC().Truncate(time.Second)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries[entry.Name] = announced{*entry, by}
}

// list answers with a page of the hosts that a person may see by the list of now.
func (d *directory) list(own *nats.Conn, m *nats.Msg) {
	user, err := hub.ParseAsker(m.Subject)
	if err != nil || !d.rates.Allow(time.Now(), user) {
		return
	}
	request, err := hub.ParseListRequest(m.Data)
	if err != nil {
		return
	}
	list := d.hub.list.Load()
	person := list.Members[user]
	if person == nil || person.Host {
		return
	}
	page, err := hub.EncodePage(d.see(list, person, request.After))
	if err != nil {
		return
	}
	own.Publish(hub.AnswerSubject(user.String(), hex.EncodeToString(request.ID[:])), page)
}

// maxPage bounds the entries that are looked at for a page: more of the smallest do not fit.
const maxPage = hub.MaxMessage / 32

// see returns the first entries behind a name that a person may see, sorted by name, with the tags of the list.
func (d *directory) see(list *hub.List, person *hub.Member, after string) []hub.Entry {
	var entries []hub.Entry
	for _, host := range visible(list, person) {
		if host.Name <= after {
			continue
		}
		by := d.hub.front.host(host.Name)
		if by == nil {
			continue
		}
		d.mu.Lock()
		known, ok := d.entries[host.Name]
		d.mu.Unlock()
		if !ok || known.by != by {
			continue
		}
		known.Tags = host.Tags
		if entries = append(entries, known.Entry); len(entries) == maxPage {
			break
		}
	}
	return entries
}
