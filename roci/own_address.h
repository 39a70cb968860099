/* The address under which others are most likely to reach this machine. */
#ifndef ROCI_OWN_ADDRESS_H
#define ROCI_OWN_ADDRESS_H

#include <netinet/in.h>

/* That from which the default route leaves, IPv4 first; else any of an interface that is up; else 127.0.0.1. Nothing is
 * sent. */
void own_address(char address[INET6_ADDRSTRLEN]);

#endif
