// Package keyfile finds out which public keys and certificates the authorized_keys files of an account allow, and
// other [Sources]: authorities, lists of principals, the output of a program. The daemon neither opens nor parses
// what an account has written: a child process does, which the daemon starts for each read by executing its own
// program with the argument [Command], and which gives up its rights for those of the account before it opens a file.
//
// So a file system that does not answer stops only children. A [Reader] bounds them: one at a time reads for an
// account, for all clients that wait for one, and the others of all accounts go on. A child that has not answered
// within readTimeout is killed, and given up: if its file system keeps it from ending, it counts for its account
// until it ends, and an account with maxChildren such children gets no further one.
//
// What a child answers is bounded and checked. The account's own processes cannot change
// it: they may neither trace the child nor open its descriptors.
package keyfile
