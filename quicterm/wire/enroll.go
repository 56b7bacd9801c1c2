package wire

// Enroll lets a further public key log in to the account until it is revoked or has expired. Enrolled answers it.
type Enroll struct {
	Kind string `cbor:"1,keyasint" text:"name"`    // "link", "device" or "share"
	Key  []byte `cbor:"2,keyasint"`                // RFC 4253, 6.6: ECDSA on P-256, or Ed25519
	Name string `cbor:"3,keyasint" text:"machine"` // for people

	// Of a share: the name of its session or the start of its id, whether the guest types, whether it is good for one
	// login, and for how many seconds it is good.
	Session string `cbor:"4,keyasint,omitempty"`
	Types   bool   `cbor:"5,keyasint,omitempty"`
	Once    bool   `cbor:"6,keyasint,omitempty"`
	Seconds uint32 `cbor:"7,keyasint,omitempty"`
}

// Enrolled answers Enroll.
type Enrolled struct {
	Expires int64 `cbor:"1,keyasint"` // Unix seconds; 0 for a device
}

// ListKeys asks for the enrolled keys of the account. Keys answers it.
type ListKeys struct{}

// Keys are enrolled keys.
type Keys struct {
	Keys []EnrolledKey `cbor:"1,keyasint"`
}

// MaxEnrolled bounds the keys that an account has enrolled at a time.
const MaxEnrolled = 100

// An EnrolledKey is one, as people see it.
type EnrolledKey struct {
	Sum     []byte `cbor:"1,keyasint"`                // SHA-256 of the public key
	Kind    string `cbor:"2,keyasint" text:"name"`    // as in Enroll
	Name    string `cbor:"3,keyasint" text:"machine"` // as in Enroll
	By      string `cbor:"4,keyasint" text:"summary"` // whose login has enrolled it: fingerprint of a key, "token" or "ssh"
	Made    int64  `cbor:"5,keyasint"`                // Unix seconds, as the next two
	Used    int64  `cbor:"6,keyasint"`                // the last login, to the minute; Made if there was none
	Expires int64  `cbor:"7,keyasint"`                // 0 for a device
	Spent   bool   `cbor:"8,keyasint"`                // it was good for one login, which it has had

	// Of a share:
	Session SessionID `cbor:"9,keyasint"`
	Types   bool      `cbor:"10,keyasint"`
	Once    bool      `cbor:"11,keyasint"`
}

// A KeyTask is what a process of an account does with its enrolled keys. Done answers KeysAdd, and Keys the others.
type KeyTask struct {
	Task uint8  `cbor:"1,keyasint"`
	Dir  string `cbor:"2,keyasint"`           // absolute path of the keys
	Sum  []byte `cbor:"3,keyasint,omitempty"` // SHA-256 of a key
	Line []byte `cbor:"4,keyasint,omitempty"` // with KeysAdd: the content of its file
}

// The tasks.
const (
	KeysAdd    uint8 = 1 // Line is kept for the key with Sum
	KeysList   uint8 = 2 // all keys
	KeysRemove uint8 = 3 // the key with Sum and those that logins by it have enrolled, or all without one
	KeysUse    uint8 = 4 // the key with Sum has logged in: that one is the answer, or an Error if it may not do so again
)

func (*Enroll) Type() Type   { return TypeEnroll }
func (*Enrolled) Type() Type { return TypeEnrolled }
func (*ListKeys) Type() Type { return TypeListKeys }
func (*Keys) Type() Type     { return TypeKeys }
