package main

// stderrFile returns nothing: launchd keeps the log open.
func stderrFile() string { return "" }

// reopenStderr does nothing.
func reopenStderr(string) error { return nil }
