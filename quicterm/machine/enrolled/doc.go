// Package enrolled keeps the keys that logins of an account have enrolled: a file each, named by the SHA-256 of the key
// in hexadecimal digits, with one line ([auth.Enrolled]). It runs with the rights of the account, in a process that does
// nothing else, and asks nobody whether a key may be enrolled. A holder only looks keys up.
//
// There are no locks: a file appears whole, and its removal is the end of the key. A key that is good for one login is
// spent when its file has got another name; that happens once.
package enrolled
