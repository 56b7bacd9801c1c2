package main

// defects are realistic mistakes. Each is found when a check of the simulation fails, or when the product hangs.
var defects = []defect{
	{
		name: "a checksum that is not checked", file: "buffer/frame.go",
		was: "crc32.MakeTable(crc32.Castagnoli)",
		is:  "new(crc32.Table)", // so that a checksum tells of the length alone
	},
	{
		name: "an ack one frame too far", file: "quicterm/session/ack.go",
		was: "received:  e.reorder.Next(),",
		is:  "received:  e.reorder.Next() + uint64(min(e.reorder.Next()%1000/999, 1)),",
	},
	{
		name: "a window that takes the frame after a gap for a duplicate", file: "buffer/reorder.go",
		was: "w.next = max(w.next, next)",
		is:  "w.next = max(w.next, next+1)",
	},
	{
		name: "input of a displaced client that the program gets", file: "quicterm/holder/attach.go",
		was: "if n := a.endpoint.DropPending(); n > 0 {",
		is:  "a.role = roleShare\n\tif n := 0; n > 0 {",
	},
	{
		name: "live output before the replay", file: "quicterm/session/carrier.go",
		was: "out:         outStream{cursor: e.acked, acked: e.acked},",
		is:  "out:         outStream{cursor: max(e.acked, e.firstUnsent), acked: e.acked},",
	},
	{
		name: "a gap that is told twice", file: "quicterm/client/output.go",
		was: "s.streams.Lost(",
		is:  "s.streams.Lost(Gap(g))\n\t\ts.streams.Lost(",
	},
	{
		name: "a nonce that is used twice", file: "migrate/carrier/sealed/sealed.go",
		was: "c.send.next++",
		is:  "c.send.next += n % 2",
	},
	{
		name: "a proof of a resume that counts twice", file: "quicterm/auth/resume.go",
		was: "if age >= replayWindow || v.seen&(1<<age) != 0 {",
		is:  "if age >= replayWindow {",
	},
	{
		name: "frames of a bulk carrier that are lost with it", file: "quicterm/session/bulk.go",
		was: "append(c.out.missed, b.out.flight...)",
		is:  "append(c.out.missed, b.out.flight[:max(len(b.out.flight), 1)-1]...)",
	},
	{
		name: "a snapshot that leaves out the frame after it", file: "quicterm/session/snapshot.go",
		was: "return &outgoingGap{next: next, offset: e.log.Offset(next), snapshot: snapshot}",
		is:  "next = min(next+1, e.log.Next())\n\treturn &outgoingGap{next: next, offset: e.log.Offset(next), snapshot: snapshot}",
	},
	{
		name: "an end that is not delivered", file: "quicterm/holder/lifetime.go",
		was: "return a.endpoint.Consumed() > exit",
		is:  "return a.endpoint.Consumed() >= exit",
	},
	{
		name: "a timer that is not started again", file: "quicterm/client/roam.go",
		was: "timer.Reset(time.Until(d))",
		is:  "timer.Reset(time.Until(d) * 100)",
	},
}
