// Package sshd decides what settings in the form of sshd_config(5) allow a login: the daemon's own, and those of the
// sshd of this machine, so that a daemon that serves all accounts beside it is no way around its configuration.
//
// It asks sshd itself: sshd -T prints the settings that apply to a login from an address,
// with the Match blocks that do. It promises:
//   - An account gets in only if the settings let it in: AllowUsers, AllowGroups, DenyUsers,
//     DenyGroups, PermitRootLogin; and of sshd also RefuseConnection, MaxSessions 0, a locked
//     password without UsePAM, a shell that cannot be executed.
//   - A key or certificate gets in only if PubkeyAuthentication, PubkeyAcceptedAlgorithms,
//     RequiredRSASize, AuthenticationMethods and RevokedKeys let it in, and only by the [Sources]:
//     AuthorizedKeysFile, TrustedUserCAKeys, AuthorizedPrincipalsFile and AuthorizedKeysCommand, which the
//     caller asks.
//   - ForceCommand, PermitTTY and PubkeyAuthOptions hold for what it gets.
//   - AuthorizedPrincipalsCommand is not run: it lets no certificate in.
//   - What cannot be obeyed refuses the account: ChrootDirectory, ForceCommand that is not UTF-8,
//     AuthenticationMethods with more than a key, a configuration that sshd itself rejects.
//
// A login counts as one to the first port of sshd (Match LocalPort). sshd -T gets the options -f, -o, -p and -h of
// the sshd that listens, at port 22 if there are several, from /proc. Where none runs, as one that is started with a
// connection, it gets those of the file that its unit reads (SSHD_OPTS). If they cannot be told, no login gets in.
// On macOS, options are not known.
//
// It does not promise that PAM is asked (UsePAM), or tcpwrappers. A file name with a space in AuthorizedKeysFile is
// taken for two names: sshd -T does not quote them.
package sshd
