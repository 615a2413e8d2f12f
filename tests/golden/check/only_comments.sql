-- nothing here
/* nor here */
;;
